package distro

import (
	"slices"
	"testing"
)

func TestValues(t *testing.T) {
	args := []string{"server", "--disable", "traefik, servicelb", "--disable=local-storage", "--disable-kube-proxy", "--flannel-backend", "none", "disable-network-policy"}
	for flag, want := range map[string][]string{
		"disable": {"traefik", "servicelb", "local-storage"}, "disable-kube-proxy": {"true"}, "flannel-backend": {"none"}, "disable-network-policy": nil, "server": nil,
	} {
		got, ok := Values(args, flag)
		if !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%s: %v %t, want %v", flag, got, ok, want)
		}
	}
}
