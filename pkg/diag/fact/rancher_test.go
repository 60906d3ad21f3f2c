package fact

import "testing"

func TestFlagWords(t *testing.T) {
	for want, values := range map[string][]string{"": nil, "true": {"TRUE"}, "false": {"0"}, "servicelb,traefik": {"traefik", "servicelb", "traefik"}} {
		if got := flagWords(values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}
