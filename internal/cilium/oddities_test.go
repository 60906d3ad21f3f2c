package cilium

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

func addr(t *testing.T, s string) lb.Address {
	t.Helper()
	a, err := lb.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// problems are the lines and problems of a *DecodeErrors.
func problems(t *testing.T, err error) []string {
	t.Helper()
	var de *DecodeErrors
	if !errors.As(err, &de) {
		t.Fatalf("error %v (%T), want *DecodeErrors", err, err)
	}
	var out []string
	for _, e := range de.Errors {
		out = append(out, e.Error())
	}
	return out
}

func TestParseMapRow(t *testing.T) {
	flags := []string{"ClusterIP", "non-routable"}
	for _, c := range []struct {
		name, key, value string
		want             lb.MapRow
		problem          string
	}{
		{"1.10 master", "10.96.0.1:443", "0.0.0.0:0 (1) [ClusterIP, non-routable]",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443"), Slot: -1, Master: true, RevNAT: 1, Flags: flags}, ""},
		{"1.10 backend", "10.96.0.1:443", "10.1.0.11:6443 (1)",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443"), Slot: -1, Backend: addr(t, "10.1.0.11:6443"), RevNAT: 1}, ""},
		{"1.16 IPv6", "[fd00::1]:80/i", "[fd00::2]:8080 (7) (2)",
			lb.MapRow{Frontend: addr(t, "[fd00::1]:80/i"), Slot: 2, Backend: addr(t, "[fd00::2]:8080"), RevNAT: 7}, ""},
		{"1.17 lost", "10.96.0.1:443/TCP (3)", "backend 6 not found",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443/TCP"), Slot: 3, Lost: true, ID: 6}, ""},
		{"1.19 wildcard", "10.96.0.1:0/ANY (0)", "0.0.0.0:0 (0) (0) [ClusterIP, non-routable] ",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:0/ANY"), Master: true, Flags: flags}, ""},
		{"IPv4 in IPv6", "[::ffff:10.96.0.1]:443/TCP (1)", "[::ffff:10.1.0.1]:443/TCP (1) (1)",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443/TCP"), Slot: 1, Backend: addr(t, "10.1.0.1:443/TCP"), RevNAT: 1}, ""},
		{"other cluster", "10.96.0.1:443/TCP (1)", "10.1.0.1@3:443/TCP (1) (1)",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443/TCP"), Slot: 1, Backend: addr(t, "10.1.0.1:443/TCP"), RevNAT: 1}, ""},
		{"no flags", "10.96.0.1:443/TCP (0)", "0.0.0.0:0 (0) (0) []",
			lb.MapRow{Frontend: addr(t, "10.96.0.1:443/TCP"), Master: true}, ""},
		{"two slots", "10.96.0.1:443/TCP (1)", "10.1.0.1:443/TCP (1) (2)", lb.MapRow{}, "says slot 2 under slot 1"},
		{"no id", "10.96.0.1:443/TCP (1)", "10.1.0.1:443/TCP", lb.MapRow{}, "without a reverse NAT id"},
		{"remark", "10.96.0.1:443/TCP (1)", "10.1.0.1:443/TCP (1) (1) # mine", lb.MapRow{}, "ends in"},
		{"huge id", "10.96.0.1:443/TCP (1)", "backend 99999999999999999999 not found", lb.MapRow{}, "no number"},
		{"huge port", "10.96.0.1:70000/TCP (1)", "10.1.0.1:443/TCP (1) (1)", lb.MapRow{}, "no number up to 65535"},
		{"proxy port", "10.96.0.1:80/TCP (0)", "0.0.0.0:0 (1) (0) [] (L7LB Proxy Port: 99999)", lb.MapRow{}, "is no port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseMapRow(c.key, c.value)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("error %v, want %q", err, c.problem)
				}
				return
			}
			if diff := cmp.Diff(c.want, got, cmpAddr); err != nil || diff != "" {
				t.Errorf("error %v, row (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A row that cannot be read must not lend its backends to the one before it.
func TestServiceListOrphans(t *testing.T) {
	got, err := DecodeServiceListText([]byte(`ID   Frontend        Service Type   Backend
1    10.96.0.1:443   ClusterIP      1 => 10.1.0.11:6443 (active)
2    10.96.0.2.3     ClusterIP      1 => 10.1.0.12:6443 (active)
                                    2 => 10.1.0.13:6443 (active)
3    10.96.0.3:443   ClusterIP      1 => 10.1.0.14 (active)
4    10.96.0.4:443   ClusterIP
                                    1 => 10.1.0.15:6443
                                    2 => 10.1.0.16:64430000
`))
	want := []lb.Frontend{
		{Address: addr(t, "10.96.0.1:443"), ID: 1, Type: "ClusterIP", Backends: []lb.Backend{{Address: addr(t, "10.1.0.11:6443"), State: lb.Active}}},
		{Address: addr(t, "10.96.0.4:443"), ID: 4, Type: "ClusterIP", Backends: []lb.Backend{{Address: addr(t, "10.1.0.15:6443")}}},
	}
	if diff := cmp.Diff(want, got, cmpAddr); diff != "" {
		t.Errorf("frontends (-want +got):\n%s", diff)
	}
	var lines []int
	var de *DecodeErrors
	if errors.As(err, &de) {
		for _, e := range de.Errors {
			lines = append(lines, e.Line)
		}
	}
	if diff := cmp.Diff([]int{3, 4, 5, 8}, lines); diff != "" {
		t.Errorf("unreadable lines (-want +got):\n%s\n%v", diff, err)
	}
}

// One field of a wrong type costs its backend, its frontend or its flags; it
// never becomes a port 0.
func TestServiceListWrongTypes(t *testing.T) {
	data := `[
 {"status":{"realized":{"id":"x","frontend-address":{"ip":"10.0.0.1","port":80,"protocol":"tcp"},"flags":{"type":"ClusterIP","healthCheckNodePort":1e99},
   "backend-addresses":[{"ip":"10.1.0.1","port":8080},{"ip":"10.1.0.2","port":808000},{"port":1},null,{"ip":"10.1.0.3","port":8080,"weight":"heavy"}]}}},
 {"status":{"realized":{"frontend-address":{"ip":"10.0.0.2","port":"80"}}}},
 {"spec":{"frontend-address":{"ip":"10.0.0.3","port":80,"scope":"sideways"}}},
 {}, 7, null
]`
	got, err := DecodeServiceListJSON([]byte(data))
	want := []lb.Frontend{{
		Address: addr(t, "10.0.0.1:80/TCP"), Type: "ClusterIP", Backends: []lb.Backend{{Address: addr(t, "10.1.0.1:8080")}},
	}}
	if diff := cmp.Diff(want, got, cmpAddr); diff != "" {
		t.Errorf("frontends (-want +got):\n%s", diff)
	}
	if n := len(problems(t, err)); n != 11 {
		t.Errorf("%d problems, want 11: %q", n, problems(t, err))
	}
}

func TestWholeAnswers(t *testing.T) {
	for _, c := range []struct {
		name, data string
		decode     func([]byte) (any, *tally, error)
		want       error
	}{
		{"blank", " \n\n", decoders["service-list.txt"], ErrEmpty},
		{"nothing", "", decoders["bpf-lb-list.txt"], ErrEmpty},
		{"no JSON", "level=info msg=hello\n", decoders["status.json"], ErrEmpty},
		{"null list", "null\n", decoders["service-list.json"], nil},
		{"null status", "null\n", decoders["status.json"], ErrEmpty},
		{"empty list", "[]\n", decoders["service-list.json"], nil},
		{"empty table", "\n", decoders["shell-db-show-frontends.json"], nil},
		{"no map", "Error: bpf obj get (/sys/fs/bpf/x): No such file or directory\n", decoders["bpf-lb-list.txt"], ErrCommandFailed},
		{"no command", "Error: unknown command \"shell\" for \"cilium-dbg\"\nRun 'cilium-dbg --help' for usage.\n", decoders["shell-lb-maps-dump.txt"], ErrCommandFailed},
		{"no shell", "Error: dial unix /var/run/cilium/shell.sock: connect: connection refused\n", decoders["shell-db-show-frontends.txt"], ErrAgentDown},
		{"brief", "cilium: daemon unreachable\n", decoders["status.txt"], ErrAgentDown},
		{"timeout", "Cilium API client timeout exceeded\n", decoders["status.json"], ErrAgentDown},
		{"1.9 URL", "Get http:///var/run/cilium/cilium.sock/v1/service: dial unix\nIs the agent running?\n", decoders["service-list.txt"], ErrAgentDown},
	} {
		if _, _, err := c.decode([]byte(c.data)); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func TestAroundTheJSON(t *testing.T) {
	whole := `{"10.96.0.1:443": ["10.1.0.1:443 (1) (1)"]}`
	for _, c := range []struct {
		name, data string
		rows       int
		want       []string
	}{
		{"clean", whole, 1, nil},
		{"log before, status after", "level=warning msg=\"x\"\ntime=1 level=warn msg=y\n" + whole + "\n> Error while running 'x':  exit status 1\n\n", 1, nil},
		{"words before", "hello\n[stdin]\n" + whole, 1, []string{`line 1: text before the JSON: "hello"`, `line 2: text before the JSON: "[stdin]"`}},
		{"words after", whole + "\nbye\n", 1, []string{`line 2: text after the JSON: "bye"`}},
		{"failure after", "\n" + whole + "\nError: broken pipe\n", 1, []string{`line 3: the command reports a failure: "Error: broken pipe"`}},
		{"cut", whole[:len(whole)-1] + ",\n \"10.96.0.2:443\": [\"10.1.", 1, []string{`line 2: the JSON is cut off: ""`}},
		{"two rows, one bad", "{\"10.96.0.1:443\":\n[\"10.1.0.1:443 (1) (1)\", \"what\"],\n\"x\": 3}", 1, []string{
			`line 1: address "what": want IP:PORT[/PROTOCOL][/i]: "10.96.0.1:443: what"`,
			`line 3: json: cannot unmarshal number into Go value of type []json.RawMessage: "3"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, err := DecodeMapListJSON([]byte(c.data))
			if len(rows) != c.rows {
				t.Errorf("%d rows, want %d", len(rows), c.rows)
			}
			var got []string
			if err != nil {
				got = problems(t, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := DecodeServiceListText([]byte(strings.Repeat(strings.Repeat("é", 500)+"\n", 1000)))
	var de *DecodeErrors
	if !errors.As(err, &de) || len(de.Errors) != maxLineErrors || de.More != 900 {
		t.Fatalf("error %.200v", err)
	}
	if n := len(de.Errors[0].Text); n > maxErrorText+len("…") {
		t.Errorf("text of %d bytes", n)
	}
	var le *LineError
	if !errors.As(err, &le) || le.Line != 1 {
		t.Errorf("first line error %v", le)
	}
}

func TestStatusLines(t *testing.T) {
	ip := netip.MustParseAddr
	for _, c := range []struct {
		name, text string
		want       func(*agent.Status)
	}{
		{"devices with zone", "KubeProxyReplacement: True [eth0 ::ffff:10.0.0.1 fe80::1%eth0]", func(s *agent.Status) {
			s.Mode, s.ModeSaid = agent.ModeTrue, "True"
			s.Devices = []agent.Device{{Name: "eth0", Addresses: []netip.Addr{ip("10.0.0.1"), ip("fe80::1")}}}
		}},
		{"a comma too many", "KubeProxyReplacement: Strict [eth0  (Direct Routing), ]", func(s *agent.Status) {
			s.Mode, s.ModeSaid, s.DirectRouting = agent.ModeTrue, "Strict", "eth0"
			s.Devices = []agent.Device{{Name: "eth0", Direct: true}}
		}},
		{"1.8 features", "KubeProxyReplacement: Probe [NodePort (SNAT)] [HostPort]", nil},
		{"native", "Routing: Network: Native   Host: BPF", func(s *agent.Status) {
			s.NetworkRouting, s.HostRouting = "Native", "BPF"
		}},
		{"configured device mode", "Cilium: Ok   OK\nDevice Mode: netkit [Configured: auto]", func(s *agent.Status) {
			s.Cilium, s.DatapathMode = agent.Component{State: "Ok", Message: "OK"}, "netkit"
		}},
		{"legacy attachment", "Cilium: OK\nAttach Mode: Legacy TC", func(s *agent.Status) {
			s.Cilium, s.AttachMode = agent.Component{State: "Ok"}, "Legacy"
		}},
		{"no masquerading", "Masquerading: Disabled", func(s *agent.Status) {
			s.Masquerade = agent.Masquerade{Mode: "Disabled", IPv4: agent.Off, IPv6: agent.Off}
		}},
		{"health unreachable", "Cilium: Ok\nCluster health: Warning cilium-health daemon unreachable", func(s *agent.Status) {
			s.Cilium = agent.Component{State: "Ok"}
		}},
		{"new lines are kept", "Cilium: Ok\nTeleportation: Enabled\n  by: magic", func(s *agent.Status) {
			s.Cilium = agent.Component{State: "Ok"}
			s.Unread = []string{"Teleportation: Enabled", "  by: magic"}
		}},
		{"details of 1.11 without socket LB", "Cilium: Ok 1.11.4 (v1.11.4-0)\nKubeProxyReplacement Details:\n  Status: Disabled", func(s *agent.Status) {
			s.Cilium, s.Version = agent.Component{State: "Ok", Message: "1.11.4 (v1.11.4-0)"}, "1.11.4"
			s.Mode, s.ModeSaid, s.SocketLB = agent.ModeFalse, "Disabled", agent.Off
		}},
		{"an excerpt tells nothing of the rest", "Cilium: Ok 1.20.2 (v1.20.2-0)\nKubeProxyReplacement Details:\n  Status: True", func(s *agent.Status) {
			s.Cilium, s.Version = agent.Component{State: "Ok", Message: "1.20.2 (v1.20.2-0)"}, "1.20.2"
			s.Mode, s.ModeSaid = agent.ModeTrue, "True"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodeStatusText([]byte(c.text))
			if c.want == nil {
				if err == nil {
					t.Errorf("no error for %q", c.text)
				}
				return
			}
			want := newStatus()
			c.want(want)
			if diff := cmp.Diff(want, got, cmpAddr); err != nil || diff != "" {
				t.Errorf("error %v, status (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStatusJSONParts(t *testing.T) {
	s, err := DecodeStatusJSON([]byte(`{
 "cilium": {"state": "Ok", "msg": 7},
 "kube-proxy-replacement": {"mode": "Magic", "features": {"socketLB": {"enabled": "yes"}, "hostPort": {"enabled": true}}},
 "controllers": [{"name": "a", "status": {"consecutive-failure-count": 1e400}}, {"name": "b", "status": {"last-failure-timestamp": "never", "consecutive-failure-count": 2}}, null],
 "masquerading": {"enabled": true, "mode": "BPF", "snat-exclusion-cidr-v4": "everything"},
 "routing": []
}`))
	if s == nil {
		t.Fatal(err)
	}
	if s.Cilium.State != "Ok" || s.HostPort != agent.On || s.ModeSaid != "Magic" || s.Mode != "" {
		t.Errorf("status %+v", s)
	}
	want := []agent.Controller{{Name: "b", Failures: 2}}
	if diff := cmp.Diff(want, s.FailedControllers); diff != "" || s.Controllers != 3 {
		t.Errorf("%d controllers, failing (-want +got):\n%s", s.Controllers, diff)
	}
	if n := len(problems(t, err)); n != 7 {
		t.Errorf("%d problems, want 7: %q", n, problems(t, err))
	}
}

func TestSwitchesOfJSON(t *testing.T) {
	for _, c := range []struct {
		name, features               string
		socketLB, hostOnly, nodePort agent.Switch
	}{
		{"no features", ``, agent.NotTold, agent.NotTold, agent.NotTold},
		{"null", `,"features":null`, agent.NotTold, agent.NotTold, agent.NotTold},
		{"empty objects are off", `,"features":{"socketLB":{},"nodePort":{}}`, agent.Off, agent.Off, agent.Off},
		{"absent objects are not told", `,"features":{"externalIPs":{}}`, agent.NotTold, agent.NotTold, agent.NotTold},
		{"old socket LB", `,"features":{"hostReachableServices":{"enabled":true},"nodePort":{"enabled":true}}`, agent.On, agent.NotTold, agent.On},
		{"host namespace only", `,"features":{"socketLB":{"enabled":true},"bpfSocketLBHostnsOnly":true}`, agent.On, agent.On, agent.NotTold},
	} {
		s, err := DecodeStatusJSON([]byte(`{"kube-proxy-replacement":{"mode":"True"` + c.features + `}}`))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := []agent.Switch{s.SocketLB, s.SocketLBHostOnly, s.NodePort}
		if diff := cmp.Diff([]agent.Switch{c.socketLB, c.hostOnly, c.nodePort}, got); diff != "" {
			t.Errorf("%s: socket LB, host only, NodePort (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDevicesWithoutReplacement(t *testing.T) {
	const kpr = `{"kube-proxy-replacement":{"mode":"False","directRoutingDevice":"eth0","deviceList":[{"name":"eth0","ip":["","10.0.0.1"]}],"features":{"nodePort":%}}}`
	off, err := DecodeStatusJSON([]byte(strings.Replace(kpr, "%", "{}", 1)))
	if err != nil || off.Devices != nil || off.DirectRouting != "" {
		t.Errorf("NodePort off: %v %+v", err, off.Devices)
	}
	on, err := DecodeStatusJSON([]byte(strings.Replace(kpr, "%", `{"enabled":true}`, 1)))
	want := []agent.Device{{Name: "eth0", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Direct: true}}
	if diff := cmp.Diff(want, on.Devices, cmpAddr); err != nil || diff != "" {
		t.Errorf("NodePort on: %v, devices (-want +got):\n%s", err, diff)
	}
}

func TestConfigNesting(t *testing.T) {
	got, err := DecodeConfigText([]byte("#### Read-only configurations ####\nEmpty\nMap\n\tA : 1\n\tfd00::1 : x : y\nB:2\n\tstray : 1\n" +
		"Two words : 3\n##### Read-write configurations #####\nB   : Enabled\n"))
	want := agent.Config{"Empty": "", "Map.A": "1", "Map.fd00::1": "x : y", "B": "Enabled"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	wantErrs := []string{`line 7: indented setting without one above it: "stray : 1"`, `line 8: setting without a key of one word: "Two words : 3"`}
	if diff := cmp.Diff(wantErrs, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestFrontendsTableColumns(t *testing.T) {
	// Another order, a column less and one that nobody knows: the header tells.
	got, err := DecodeFrontendsTableText([]byte(
		"Address             Color   Status   ServiceName      Type        Backends\n" +
			"10.96.0.1:443/TCP   red     Done     default/kübern   ClusterIP   10.1.0.1:443/TCP (maintenance)\n" +
			"10.96.0.2:443/TCP           Error    default/two      ClusterIP\n" +
			"10.96.0.3:443/TCP           Done     nonamespace      ClusterIP\n"))
	want := []lb.TableRow{
		{Address: addr(t, "10.96.0.1:443/TCP"), Status: "Done", Type: "ClusterIP", Service: lb.Name{Namespace: "default", Name: "kübern"},
			Backends: []lb.Backend{{Address: addr(t, "10.1.0.1:443/TCP"), State: lb.Maintenance}}},
		{Address: addr(t, "10.96.0.2:443/TCP"), Status: "Error", Type: "ClusterIP", Service: lb.Name{Namespace: "default", Name: "two"}},
	}
	if diff := cmp.Diff(want, got, cmpAddr); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := len(problems(t, err)); n != 1 {
		t.Errorf("%d problems, want 1: %v", n, err)
	}
}
