package lint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
	"github.com/kubectl-kpr/kubectl-kpr/internal/rancher"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

const host = "k8sServiceHost: 10.0.0.10\nk8sServicePort: 6443\n"

// judge gives a line for each finding: severity, rule, place and key.
func judge(t *testing.T, version, values, config string) (lines []string, run *diag.Run) {
	t.Helper()
	in := Input{Version: version}
	var err error
	if values != "" {
		if in.Values, err = helm.ReadValues([]helm.File{{Name: "v.yaml", Data: []byte(values)}}); err != nil {
			t.Fatal(err)
		}
	}
	if config != "" {
		if in.Rancher, err = rancher.Merge([]rancher.File{{Name: "config.yaml", Data: []byte(config)}}); err != nil {
			t.Fatal(err)
		}
	}
	run = Run(in, []string{"v.yaml"})
	for _, f := range run.Results[0].Findings {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", f.Severity, f.Rule.Name, f.Subject, f.Address))
	}
	return lines, run
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		name, version, values string
		want                  []string
		says                  string // of some finding
	}{
		{"healthy", "1.20.2", host + "kubeProxyReplacement: true\nbpf:\n  masquerade: true\n  hostLegacyRouting: false\nloadBalancer: {algorithm: maglev, mode: snat}\nhubble: {relay: {enabled: true}}\n", nil, ""},
		{"nothing about KPR", "1.19.3", "hubble:\n  enabled: false\nk8sServiceHost: \"\"\n", nil, ""},
		{"strict in 1.15", "1.15.6", host + "kubeProxyReplacement: strict\n", nil, ""},
		{"strict in 1.16", "1.16.1", host + "kubeProxyReplacement: strict\n", []string{"error values-rejected v.yaml:3 kubeProxyReplacement"}, "It meant true"},
		{"partial in 1.17", "1.17.1", "kubeProxyReplacement: partial\n", []string{"error values-rejected v.yaml:1 kubeProxyReplacement"}, "choose true or false"},
		{"word quoted", "1.20.2", host + "kubeProxyReplacement: \"true\"\n", nil, ""},
		{"slip in the word", "1.20.2", "kubeProxyReplacement: ture\n", []string{"error values-rejected v.yaml:1 kubeProxyReplacement"}, "true or false: did you mean true?"},
		{"object for a word", "1.20.2", "kubeProxyReplacement:\n  enabled: true\n", []string{"error values-rejected v.yaml:1 kubeProxyReplacement"}, "object"},
		{"null leaves the chart's own", "1.20.2", "kubeProxyReplacement: null\nloadBalancer: {mode: ~}\n", nil, ""},

		{"no address", "1.20.2", "kubeProxyReplacement: true\n", []string{"error values-api-server v.yaml:1 kubeProxyReplacement"}, "ClusterIP"},
		{"empty host", "1.20.2", "kubeProxyReplacement: true\nk8sServiceHost: \"\"\nk8sServicePort: 6443\n", []string{"error values-api-server v.yaml:2 k8sServiceHost"}, ""},
		{"empty port", "1.19.3", "k8sServiceHost: 10.0.0.10\nk8sServicePort: \"\"\n", []string{"error values-api-server v.yaml:2 k8sServicePort"}, "empty port"},
		{"no port", "1.19.3", "kubeProxyReplacement: true\nk8sServiceHost: 10.0.0.10\n", []string{"error values-api-server v.yaml:2 k8sServiceHost"}, ""},
		{"port alone", "1.19.3", "k8sServicePort: 6443\n", []string{"error values-api-server v.yaml:1 k8sServicePort"}, ""},
		{"reference", "1.18.1", "kubeProxyReplacement: true\nk8sServiceHostRef: {name: a, key: b}\n", nil, ""},
		{"half a reference", "1.18.1", "kubeProxyReplacement: true\nk8sServiceHostRef: {name: a}\n", []string{"error values-api-server v.yaml:2 k8sServiceHostRef", "error values-api-server v.yaml:1 kubeProxyReplacement"}, ""},
		{"servers", "1.18.1", "kubeProxyReplacement: true\nk8s:\n  apiServerURLs: https://a:6443 https://b:6443\n", nil, ""},
		{"one server", "1.18.1", "kubeProxyReplacement: true\nk8s: {apiServerURLs: \"https://a:6443\"}\n", []string{"info values-api-server v.yaml:2 k8s.apiServerURLs"}, ""},
		{"servers too early", "1.17.6", "kubeProxyReplacement: true\nk8s: {apiServerURLs: \"https://a:6443 https://b:6443\"}\n", []string{"error values-ignored v.yaml:2 k8s.apiServerURLs"}, "comes with Cilium 1.18"},
		{"auto", "1.17.6", "kubeProxyReplacement: true\nk8sServiceHost: auto\n", nil, ""},
		{"auto too early", "1.15.6", "kubeProxyReplacement: true\nk8sServiceHost: auto\n", []string{"error values-api-server v.yaml:2 k8sServiceHost"}, ""},
		{"URL", "1.20.2", "kubeProxyReplacement: true\nk8sServiceHost: https://10.0.0.1\nk8sServicePort: 6443\n", []string{"error values-api-server v.yaml:2 k8sServiceHost"}, "is a URL"},
		{"host and port", "1.20.2", "k8sServiceHost: 10.0.0.1:6443\nk8sServicePort: 6443\n", []string{"error values-api-server v.yaml:1 k8sServiceHost"}, "holds a port"},
		{"brackets", "1.20.2", "k8sServiceHost: \"[fd00::1]\"\nk8sServicePort: 6443\n", []string{"error values-api-server v.yaml:1 k8sServiceHost"}, "without brackets"},
		{"IPv6", "1.20.2", "kubeProxyReplacement: true\nk8sServiceHost: fd00::1\nk8sServicePort: 6443\n", nil, ""},
		{"the Service itself", "1.20.2", "k8sServiceHost: kubernetes.default.svc\nk8sServicePort: 443\n", []string{"error values-api-server v.yaml:1 k8sServiceHost"}, ""},
		{"its usual address", "1.20.2", "k8sServiceHost: 10.96.0.1\nk8sServicePort: 443\n", []string{"warning values-api-server v.yaml:1 k8sServiceHost"}, ""},
		{"Talos", "1.20.2", "kubeProxyReplacement: true\nk8sServiceHost: localhost\nk8sServicePort: 7445\n", nil, ""},
		{"loopback that nobody knows", "1.20.2", "k8sServiceHost: 127.0.0.1\nk8sServicePort: 8443\n", []string{"warning values-api-server v.yaml:2 k8sServicePort"}, ""},

		{"masquerade without KPR", "1.20.2", "bpf:\n  masquerade: true\n", []string{"error values-kpr v.yaml:2 bpf.masquerade"}, "ClusterIPs"},
		{"masquerade without KPR, agent exits", "1.17.6", "kubeProxyReplacement: false\nbpf:\n  masquerade: true\n", []string{"error values-rejected v.yaml:3 bpf.masquerade"}, "exit at start"},
		{"masquerade without KPR, falls back", "1.14.9", "bpf:\n  masquerade: true\n", []string{"error values-kpr v.yaml:2 bpf.masquerade"}, "iptables"},
		{"host routing without masquerade", "1.19.3", host + "kubeProxyReplacement: true\nbpf:\n  hostLegacyRouting: false\n", []string{"warning values-kpr v.yaml:5 bpf.hostLegacyRouting"}, "bpf.masquerade: true"},
		{"host routing without anything", "1.19.3", "bpf:\n  hostLegacyRouting: false\n", []string{"warning values-kpr v.yaml:2 bpf.hostLegacyRouting"}, "kubeProxyReplacement: true and bpf.masquerade"},
		{"host routing, nothing masqueraded", "1.19.3", host + "kubeProxyReplacement: true\nenableIPv4Masquerade: false\nenableIPv6Masquerade: false\nbpf:\n  hostLegacyRouting: false\n", nil, ""},
		{"socket LB forced", "1.19.3", host + "kubeProxyReplacement: true\nsocketLB: {enabled: false}\n", []string{"info values-kpr v.yaml:4 socketLB.enabled"}, ""},
		{"healthz beside kube-proxy", "1.16.3", "kubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256\n", []string{"error values-kpr v.yaml:1 kubeProxyReplacementHealthzBindAddr"}, "exit"},
		{"healthz without KPR", "1.18.3", "kubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256\n", []string{"warning values-kpr v.yaml:1 kubeProxyReplacementHealthzBindAddr"}, "no effect"},
		{"healthz too early", "1.17.3", host + "kubeProxyReplacement: true\nkubeProxyReplacementHealthzBindAddr: '[::]:10256'\n", []string{"info values-kpr v.yaml:4 kubeProxyReplacementHealthzBindAddr"}, "agents of 1.17.3 exit"},
		{"healthz is a word", "1.17.3", host + "kubeProxyReplacement: true\nkubeProxyReplacementHealthzBindAddr: 'true'\n", []string{"error values-kpr v.yaml:4 kubeProxyReplacementHealthzBindAddr"}, ""},
		{"own device", "1.20.2", "devices: [eth0, cilium_host]\n", []string{"error values-kpr v.yaml:1 devices"}, "cilium_host"},

		{"slip in a name", "1.20.2", "kubeproxyReplacement: true\nbpf:\n  masqerade: true\n", []string{"error values-ignored v.yaml:1 kubeproxyReplacement", "error values-ignored v.yaml:3 bpf.masqerade"}, "did you mean kubeProxyReplacement?"},
		{"a key of cilium-config", "1.20.2", "enable-bpf-masquerade: true\ninstall-no-conntrack-iptables-rules: false\n", []string{"error values-ignored v.yaml:1 enable-bpf-masquerade", "error values-ignored v.yaml:2 install-no-conntrack-iptables-rules"}, "did you mean bpf.masquerade?"},
		{"name of another thing", "1.20.2", "somethingElse: {bpf: 1}\n", []string{"warning values-ignored v.yaml:1 somethingElse"}, ""},
		{"gone", "1.19.0", "nodePort:\n  enabled: true\nsessionAffinity: true\n", []string{"error values-ignored v.yaml:2 nodePort.enabled", "error values-ignored v.yaml:3 sessionAffinity"}, "from Cilium 1.19 on"},
		{"not gone yet", "1.18.6", "nodePort:\n  enabled: true\nsessionAffinity: true\n", nil, ""},
		{"tunnel", "1.15.0", "tunnel: disabled\n", []string{"error values-rejected v.yaml:1 tunnel"}, "routingMode and tunnelProtocol"},
		{"tunnel in time", "1.14.0", "tunnel: vxlan\n", nil, ""},
		{"twice", "1.20.2", "bpf: {masquerade: true}\nbpf: {masquerade: false}\n", []string{"warning values-ignored v.yaml:1 bpf"}, "again in line 2"},

		{"LB mode", "1.20.2", "loadBalancer:\n  mode: dsrr\n", []string{"error values-rejected v.yaml:2 loadBalancer.mode"}, "did you mean dsr?"},
		{"dsr in a VXLAN tunnel", "1.20.2", host + "kubeProxyReplacement: true\nloadBalancer:\n  mode: dsr\n", []string{"error values-rejected v.yaml:5 loadBalancer.mode"}, "VXLAN"},
		{"dsr without KPR", "1.20.2", "loadBalancer:\n  mode: dsr\n", nil, ""},
		{"native without its range", "1.20.2", "routingMode: native\n", []string{"error values-rejected v.yaml:1 routingMode"}, "ipv4NativeRoutingCIDR"},
		{"native", "1.20.2", "routingMode: native\nipv4NativeRoutingCIDR: 10.0.0.0/8\n", nil, ""},
		{"native on ENI", "1.20.2", "routingMode: native\neni: {enabled: true}\n", nil, ""},
		{"range of ports", "1.20.2", "nodePort: {range: \"30000\"}\n", []string{"error values-rejected v.yaml:1 nodePort.range"}, "two ports"},
		{"IPsec", "1.15.3", host + "kubeProxyReplacement: strict\nencryption:\n  enabled: true\n  type: ipsec\n", []string{"error values-rejected v.yaml:5 encryption.enabled"}, "IPsec"},
		{"extraConfig", "1.20.2", "extraConfig:\n  bpf-lb-mode: dsrr\n  enable-node-port: \"true\"\n  some-other: x\n", []string{"error values-ignored v.yaml:3 extraConfig.enable-node-port", "error values-rejected v.yaml:2 extraConfig.bpf-lb-mode"}, ""},
		{"extraConfig turns it on", "1.20.2", "extraConfig:\n  kube-proxy-replacement: \"true\"\n", []string{"error values-api-server v.yaml:2 extraConfig.kube-proxy-replacement"}, ""},
		{"rke2", "", "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: rke2-cilium}\nspec:\n  valuesContent: |-\n    kubeProxyReplacement: true\n    k8sServiceHost: localhost\n    k8sServicePort: ''\n", []string{"error values-api-server v.yaml:8 k8sServicePort"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, run := judge(t, tt.version, tt.values, "")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said(t, run, tt.says)
		})
	}
}

func said(t *testing.T, run *diag.Run, want string) {
	t.Helper()
	var all []string
	keys := map[string]bool{}
	for _, f := range run.Results[0].Findings {
		all = append(all, f.Message)
		if keys[f.Key] {
			t.Errorf("key %s is there twice", f.Key)
		}
		keys[f.Key] = true
	}
	if text := strings.Join(all, "\n"); !strings.Contains(text, want) {
		t.Errorf("%q is not in:\n%s", want, text)
	}
}

func TestVersion(t *testing.T) {
	for _, tt := range []struct{ version, values, want, note string }{
		{"", "a: 1\n", Newest, "judged as Cilium 1.20"},
		{"v1.17.2", "a: 1\n", "1.17.2", ""},
		{"", "image:\n  tag: v1.16.4\n", "1.16.4", ""},
		{"", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cilium}\nspec:\n  chart: {spec: {chart: cilium, version: 1.15.1}}\n  values: {}\n", "1.15.1", ""},
		{"", "image:\n  tag: latest\n", Newest, "judged as Cilium 1.20"},
	} {
		_, run := judge(t, tt.version, tt.values, "")
		if got := run.About.Cilium[0]; got != tt.want {
			t.Errorf("%s %s: judged as %s, want %s", tt.version, tt.values, got, tt.want)
		}
		if got := strings.Join(run.Results[0].Notes, ""); !strings.Contains(got, tt.note) || tt.note == "" && got != "" {
			t.Errorf("%s: note %q", tt.values, got)
		}
	}
}

func TestRancher(t *testing.T) {
	const kpr = "kubeProxyReplacement: true\nk8sServiceHost: 127.0.0.1\nk8sServicePort: 6444\n"
	for _, tt := range []struct {
		name, config, values string
		want                 []string
		says                 string
	}{
		{"healthy k3s", "disable: [servicelb, traefik]\ndisable-kube-proxy: true\nflannel-backend: none\ndisable-network-policy: true\ntoken: x\n", kpr, nil, ""},
		{"healthy RKE2", "cni: cilium\ndisable-kube-proxy: true\n", "kubeProxyReplacement: true\nk8sServiceHost: localhost\nk8sServicePort: 6443\n", nil, ""},
		{"healthy agent", "server: https://10.0.0.1:6443\ntoken: x\n", "", nil, ""},
		{"kube-proxy in the list", "disable:\n- traefik\n- kube-proxy\n- servicelb\nflannel-backend: none\ndisable-network-policy: true\n", "", []string{"error k3s-disable-list config.yaml:3 disable"}, "disable-kube-proxy: true"},
		{"in the list, and off", "disable: kube-proxy,servicelb\ndisable-kube-proxy: true\nflannel-backend: none\ndisable-network-policy: true\n", "", []string{"warning k3s-disable-list config.yaml:1 disable"}, ""},
		{"stays", "token: x\n", "", []string{"info k3s-config config.yaml:1 disable-kube-proxy"}, ""},
		{"everything else stays", "disable-kube-proxy: true\n", "", []string{"error k3s-config config.yaml:1 flannel-backend", "warning k3s-config config.yaml:1 disable-network-policy", "info k3s-config config.yaml:1 disable"}, ""},
		{"flannel", "token: x\nflannel-backend: vxlan\ndisable-kube-proxy: true\ndisable-network-policy: false\ndisable: servicelb\n", "", []string{"error k3s-config config.yaml:2 flannel-backend", "warning k3s-config config.yaml:4 disable-network-policy"}, ""},
		{"slip", "disable-kubeproxy: true\nflannel-backend: none\ndisable-network-policy: true\n", "", []string{"error k3s-config config.yaml:1 disable-kubeproxy", "info k3s-config config.yaml:1 disable-kube-proxy"}, "did you mean disable-kube-proxy?"},
		{"no bool", "disable-kube-proxy: yse\ndisable-network-policy: true\nflannel-backend: none\n", "", []string{"error k3s-config config.yaml:1 disable-kube-proxy"}, "neither true nor false"},
		{"arguments for nobody", "cni: [multus, cilium]\nkube-proxy-arg: proxy-mode=ipvs\ndisable-kube-proxy: true\n", "", []string{"info k3s-config config.yaml:2 kube-proxy-arg"}, ""},
		{"canal", "cni: canal\ndisable-kube-proxy: true\n", "", []string{"error k3s-config config.yaml:1 cni"}, ""},
		{"nobody serves", "cni: cilium\ndisable-kube-proxy: true\n", "kubeProxyReplacement: false\n", []string{"error k3s-config config.yaml:2 disable-kube-proxy"}, "nobody"},
		{"both serve", "cni: cilium\ndisable-kube-proxy: false\n", "kubeProxyReplacement: true\nk8sServiceHost: localhost\nk8sServicePort: 6443\n", []string{"warning k3s-config config.yaml:2 disable-kube-proxy"}, "stage"},
		{"ClusterIP by the range", "cni: cilium\ndisable-kube-proxy: true\nservice-cidr: 10.45.0.0/16,fd00::/112\n", "kubeProxyReplacement: true\nk8sServiceHost: 10.45.0.1\nk8sServicePort: 443\n", []string{"error values-api-server v.yaml:2 k8sServiceHost"}, "config.yaml:3"},
		{"port of servers only", "disable: [servicelb]\ndisable-kube-proxy: true\nflannel-backend: none\ndisable-network-policy: true\n", "kubeProxyReplacement: true\nk8sServiceHost: 127.0.0.1\nk8sServicePort: 6443\n", []string{"error values-api-server v.yaml:3 k8sServicePort"}, "6444"},
		{"port of the other product", "cni: cilium\ndisable-kube-proxy: true\n", kpr, []string{"warning values-api-server v.yaml:3 k8sServicePort"}, ""},
		{"healthz once it is gone", "cni: cilium\ndisable-kube-proxy: true\n", "kubeProxyReplacement: true\nk8sServiceHost: localhost\nk8sServicePort: 6443\nkubeProxyReplacementHealthzBindAddr: 0.0.0.0:10256\n", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, run := judge(t, "1.20.2", tt.values, tt.config)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said(t, run, tt.says)
		})
	}
}

// TestChartOfSettings holds that the names of the settings are names of the
// chart: one would call the other unknown.
func TestChartOfSettings(t *testing.T) {
	for _, path := range []string{"bpf.masquerade", "loadBalancer.dsrDispatch", "nodePort.range", "k8s.apiServerURLs", "operator.replicas", "hubble.ui.enabled"} {
		if ok, _ := known(path); !ok {
			t.Errorf("%s is not known", path)
		}
	}
	for word, want := range map[string]string{"kubeProxyReplacment": "kubeProxyReplacement", "ipv7": "ipv4", "zzzzzzz": "", "sockteLB": "socketLB", "nodeport": "nodePort"} {
		if _, meant := known(word); meant != want {
			t.Errorf("%s: %q, want %q", word, meant, want)
		}
	}
}

func FuzzRun(f *testing.F) {
	f.Add("1.20.2", host+"kubeProxyReplacement: true\nextraConfig: {devices: [a, 1]}\n", "disable: [a, {b: 1}]\ncni+: x\n")
	f.Add("", "nodePort: 1\nk8s: []\n", "[]")
	f.Fuzz(func(t *testing.T, version, values, config string) {
		in := Input{Version: version}
		in.Values, _ = helm.ReadValues([]helm.File{{Name: "v", Data: []byte(values)}})
		in.Rancher, _ = rancher.Merge([]rancher.File{{Name: "c", Data: []byte(config)}})
		for _, f := range Run(in, nil).Results[0].Findings {
			if f.Subject == "" || f.Message == "" {
				t.Errorf("%+v", f)
			}
		}
	})
}
