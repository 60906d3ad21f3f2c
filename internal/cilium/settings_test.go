package cilium

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// TestSettingsTable holds that each name stands for one setting and that each
// default and forced value is one that the setting takes.
func TestSettingsTable(t *testing.T) {
	keys, helm := map[string]bool{}, map[string]bool{}
	for _, s := range Settings() {
		if s.Key == "" && s.Helm == "" || s.Key != "" && keys[s.Key] || s.Helm != "" && helm[s.Helm] {
			t.Errorf("%q %q: no name, or one that is there twice", s.Key, s.Helm)
		}
		keys[s.Key], helm[s.Helm] = true, true
		for _, v := range append([]string{s.Default, s.Forced}, s.Values...) {
			if _, ok := s.Normal(v); v != "" && !ok {
				t.Errorf("%s: %q is no value that it takes", s.Key, v)
			}
		}
		for _, v := range []string{s.Since, s.Gone} {
			if _, ok := parseRelease(v); v != "" && !ok {
				t.Errorf("%s: version %q", s.Key, v)
			}
		}
		if (s.Gone == "") != (s.Instead == "") && s.Key != "bpf-lb-proto-diff" {
			t.Errorf("%s: Gone and Instead go together", s.Key)
		}
	}
	if _, ok := SettingOf("no-such-key"); ok {
		t.Error("a setting without a place in the table")
	}
	if s, ok := SettingOfHelm("bpf.masquerade"); !ok || s.Key != "enable-bpf-masquerade" {
		t.Errorf("bpf.masquerade: %+v", s)
	}
}

func TestSettingIn(t *testing.T) {
	for _, tt := range []struct {
		key, version string
		want         Presence
	}{
		{"enable-node-port", "1.18.4", Present},
		{"enable-node-port", "1.19.0", Removed},
		{"enable-node-port", "", Unclear},
		{"k8s-api-server-urls", "1.17.6", NotYet},
		{"k8s-api-server-urls", "1.18.0", Present},
		{"tunnel", "1.14.9", Present},
		{"tunnel", "1.15.0", Removed},
		{"enable-bpf-masquerade", "", Present},
	} {
		s, _ := SettingOf(tt.key)
		if got := s.In(CapabilitiesOf(tt.version)); got != tt.want {
			t.Errorf("%s in %q: %d, want %d", tt.key, tt.version, got, tt.want)
		}
	}
}

func TestSettingSame(t *testing.T) {
	for _, tt := range []struct {
		key, told, runs string
		want            lb.Answer
	}{
		{"kube-proxy-replacement", "strict", "True", lb.Yes},
		{"kube-proxy-replacement", "disabled", "false", lb.Yes},
		{"kube-proxy-replacement", "partial", "true", lb.No},
		{"kube-proxy-replacement", "ture", "true", lb.Unknown},
		{"enable-host-legacy-routing", "false", "Disabled", lb.Yes},
		{"enable-host-legacy-routing", "false", "Enabled", lb.No},
		{"enable-bpf-masquerade", "strict", "true", lb.Unknown},
		{"bpf-lb-acceleration", "disabled", "None", lb.Yes},
		{"bpf-lb-acceleration", "native", "Disabled", lb.No},
		{"bpf-lb-dsr-dispatch", "opt", "IP Option/Extension", lb.Yes},
		{"node-port-range", "30000,32767", "30000-32767", lb.Yes},
		{"node-port-range", "20000,22767", "30000-32767", lb.No},
		{"node-port-range", "", "30000-32767", lb.Yes},
		{"devices", "eth+ ens3", "[ens3 eth0 eth1]", lb.Yes},
		{"devices", "eth0", "[eth0 tailscale0]", lb.No},
		{"devices", "eth0 eth1", "[eth0]", lb.Unknown},
		{"devices", "", "[eth0]", lb.Yes},
		{"bpf-lb-map-max", "65536", "65536", lb.Yes},
		{"routing-mode", "native", "Tunnel", lb.No},
	} {
		s, _ := SettingOf(tt.key)
		if got := s.Same(tt.told, tt.runs); got != tt.want {
			t.Errorf("%s: told %q, runs %q: %v, want %v", tt.key, tt.told, tt.runs, got, tt.want)
		}
	}
}

// TestSettingsOfARecordedAgent reads what an agent of 1.20.2 prints.
func TestSettingsOfARecordedAgent(t *testing.T) {
	raw, err := os.ReadFile("../../test/fixtures/lab-kpr/nodes/kpr-w1/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := DecodeConfigText(raw)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile("../../test/fixtures/lab-kpr/nodes/kpr-w1/status.json")
	if err != nil {
		t.Fatal(err)
	}
	st, err := DecodeStatusJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"enable-bpf-masquerade":      {"true", "true"},
		"enable-host-legacy-routing": {"Disabled", "false"},
		"bpf-lb-sock-hostns-only":    {"Disabled", "false"},
		"routing-mode":               {"tunnel", "tunnel"},
		"kube-proxy-replacement":     {"", "true"}, // not in DaemonConfig since 1.19
		"node-port-range":            {"", "30000-32767"},
		"devices":                    {"[eth0]", "eth0"},
		"bpf-lb-acceleration":        {"disabled", "disabled"},
	} {
		s, _ := SettingOf(key)
		got, _ := s.Running(c)
		said, _ := s.InStatus(st)
		if diff := cmp.Diff(want, [2]string{got, said}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if _, ok := (Setting{Key: "x"}).InStatus(&agent.Status{}); ok {
		t.Error("a setting without a place in the status")
	}
}

func TestStartFaults(t *testing.T) {
	for _, tt := range []struct {
		name, version, config string
		want                  string // words of the first fault, "" for none
	}{
		{"healthy", "1.20.2", "kube-proxy-replacement=true enable-bpf-masquerade=true routing-mode=tunnel tunnel-protocol=vxlan", ""},
		{"nothing set", "1.17.6", "", ""},
		{"version not known", "", "kube-proxy-replacement=strict", ""},
		{"masquerade without KPR", "1.17.6", "kube-proxy-replacement=false enable-bpf-masquerade=true", "requires NodePort"},
		{"masquerade with NodePort alone", "1.17.6", "kube-proxy-replacement=false enable-node-port=true enable-bpf-masquerade=true", ""},
		{"masquerade without KPR, warned only", "1.14.19", "kube-proxy-replacement=false enable-bpf-masquerade=true", ""},
		{"masquerade without KPR, not checked", "1.20.2", "kube-proxy-replacement=false enable-bpf-masquerade=true", ""},
		{"strict in 1.16", "1.16.0", "kube-proxy-replacement=strict", "true and false only"},
		{"strict in 1.15", "1.15.6", "kube-proxy-replacement=strict", ""},
		{"partial in 1.19", "1.19.3", "kube-proxy-replacement=partial", "true and false only"},
		{"dsr over vxlan", "1.20.2", "kube-proxy-replacement=true bpf-lb-mode=dsr", "VXLAN"},
		{"dsr over vxlan, KPR off", "1.20.2", "kube-proxy-replacement=false bpf-lb-mode=dsr", ""},
		{"hybrid over geneve by option", "1.17.6", "kube-proxy-replacement=true bpf-lb-mode=hybrid tunnel-protocol=geneve", "bpf-lb-dsr-dispatch=geneve"},
		{"dsr over geneve", "1.17.6", "kube-proxy-replacement=true bpf-lb-mode=dsr tunnel-protocol=geneve bpf-lb-dsr-dispatch=geneve", ""},
		{"dsr native", "1.20.2", "kube-proxy-replacement=true bpf-lb-mode=dsr routing-mode=native", ""},
		{"dsr native, old key", "1.14.2", "kube-proxy-replacement=true bpf-lb-mode=dsr tunnel=disabled", ""},
		{"dsr geneve native without protocol", "1.17.6", "kube-proxy-replacement=true bpf-lb-mode=dsr routing-mode=native bpf-lb-dsr-dispatch=geneve", "tunnel-protocol=geneve"},
		{"no iptables", "1.20.2", "kube-proxy-replacement=true install-iptables-rules=false", "iptables rules"},
		{"no conntrack without KPR", "1.19.3", "kube-proxy-replacement=false install-no-conntrack-iptables-rules=true", "need KPR"},
		{"no conntrack in a tunnel", "1.19.3", "kube-proxy-replacement=true enable-bpf-masquerade=true install-no-conntrack-iptables-rules=true", "native routing"},
		{"ip-masq-agent", "1.20.2", "enable-ip-masq-agent=true", "BPF masquerade only"},
		{"no family to masquerade", "1.20.2", "kube-proxy-replacement=true enable-bpf-masquerade=true enable-ipv4-masquerade=false enable-ipv6-masquerade=false", "IPv4 or IPv6"},
		{"no family to masquerade, disabled by itself", "1.15.1", "kube-proxy-replacement=true enable-bpf-masquerade=true enable-ipv4-masquerade=false enable-ipv6-masquerade=false", ""},
		{"ipsec", "1.15.1", "kube-proxy-replacement=true enable-ipsec=true", "IPsec"},
		{"ipsec later", "1.17.6", "kube-proxy-replacement=true enable-ipsec=true", ""},
		{"direct routes in a tunnel", "1.20.2", "auto-direct-node-routes=true", "direct node routes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := map[string]string{}
			for _, kv := range strings.Fields(tt.config) {
				k, v, _ := strings.Cut(kv, "=")
				set[k] = v
			}
			got := StartFaults(func(k string) string { return set[k] }, CapabilitiesOf(tt.version))
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("got %v", got)
			case tt.want != "" && (len(got) == 0 || !strings.Contains(got[0].Why, tt.want)):
				t.Errorf("got %v, want %q", got, tt.want)
			}
			for _, f := range got {
				for _, k := range f.Keys {
					if _, ok := SettingOf(k); !ok {
						t.Errorf("%s is no key of the table", k)
					}
				}
			}
		})
	}
}
