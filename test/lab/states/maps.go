package states

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

// The maps as Cilium 1.20 names and lays them out.
const (
	globals     = "/sys/fs/bpf/tc/globals/"
	backendsMap = globals + "cilium_lb4_backends_v3"
	servicesMap = globals + "cilium_lb4_services_v2"
)

func mapFaults() []State {
	return []State{
		{
			Name: "backend-lost", Doc: "a backend of shop/web deleted from kpr-w1's backend map behind the agent's back", Base: onKPR(),
			Enter: damage(func(m maps) ([]change, error) {
				slot, err := m.slot(1)
				return []change{{Map: backendsMap, Key: slot.backend()}}, err
			}),
			Leave: mend, Expect: Expect{Exit: 2, Rule: "agent-vs-bpf", Node: hurt, Subject: "service/shop/web"},
		},
		{
			Name: "slot-lost", Doc: "slot 2 of shop/web's ClusterIP deleted from kpr-w1's service map, the count left", Base: onKPR(),
			Enter: damage(func(m maps) ([]change, error) {
				slot, err := m.slot(2)
				return []change{{Map: servicesMap, Key: slot.Key}}, err
			}),
			Leave: mend, Expect: Expect{Exit: 2, Rule: "agent-vs-bpf", Node: hurt, Subject: "service/shop/web"},
		},
		{
			Name: "frontend-lost", Doc: "shop/web's ClusterIP deleted from kpr-w1's service map, with all its slots", Base: onKPR(),
			Enter: damage(func(m maps) ([]change, error) {
				var out []change
				for _, e := range m.services {
					out = append(out, change{Map: servicesMap, Key: e.Key})
				}
				return out, nil
			}),
			Leave: mend, Expect: Expect{Exit: 2, Rule: "agent-vs-bpf", Node: hurt, Subject: "service/shop/web"},
		},
		{
			Name: "slot-changed", Doc: "slot 1 of shop/web's ClusterIP on kpr-w1 points at the API server's backend", Base: onKPR(),
			Enter: damage(func(m maps) ([]change, error) {
				slot, err := m.slot(1)
				if err != nil {
					return nil, err
				}
				foreign, err := m.backendAt("172.30.0.11", 6443)
				return []change{{Map: servicesMap, Key: slot.Key, New: foreign + slot.Value[len(foreign):]}}, err
			}),
			Leave: mend, Expect: Expect{Exit: 2, Rule: "agent-vs-bpf", Node: hurt, Subject: "service/shop/web"},
		},
	}
}

// element is one entry of a map, key and value in hexadecimal digits.
type element struct{ Key, Value string }

// backend is the backend's id in a slot's value, as the backend map's key.
func (e element) backend() string { return e.Value[:8] }

// slotNumber stands after address and port in the key.
func (e element) slotNumber() int {
	b, err := hex.DecodeString(e.Key)
	if err != nil || len(b) < 8 {
		return -1
	}
	return int(binary.LittleEndian.Uint16(b[6:]))
}

// maps are the entries of one frontend, master first, and all backends.
type maps struct {
	services, backends []element
}

func (m maps) slot(n int) (element, error) {
	for _, e := range m.services {
		if e.slotNumber() == n {
			return e, nil
		}
	}
	return element{}, fmt.Errorf("service map: no slot %d among %d entries", n, len(m.services))
}

// backendAt finds a backend's id by its address and port.
func (m maps) backendAt(ip string, port int) (string, error) {
	want := addressAndPort(netip.MustParseAddr(ip), port)
	for _, e := range m.backends {
		if strings.HasPrefix(e.Value, want) {
			return e.Key, nil
		}
	}
	return "", fmt.Errorf("backend map: no %s:%d", ip, port)
}

func addressAndPort(ip netip.Addr, port int) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint16(ip.AsSlice(), uint16(port)))
}

// change is one entry to be deleted or, with New, overwritten; Old is what was
// there.
type change struct{ Map, Key, New, Old string }

const damageFile = "damage.json"

// damage reads the maps of a node, lets choose say what to change, notes what
// was there, and changes it.
func damage(choose func(maps) ([]change, error)) func(context.Context, *cluster.Lab) error {
	return func(ctx context.Context, l *cluster.Lab) error {
		m, err := readMaps(ctx, l)
		if err != nil {
			return err
		}
		changes, err := choose(m)
		if err != nil {
			return err
		}
		for i, c := range changes {
			all := m.services
			if c.Map == backendsMap {
				all = m.backends
			}
			j := slices.IndexFunc(all, func(e element) bool { return e.Key == c.Key })
			if j < 0 {
				return fmt.Errorf("%s: no key %s", c.Map, c.Key)
			}
			changes[i].Old = all[j].Value
		}
		data, err := json.Marshal(changes)
		if err != nil {
			return err
		}
		if err := os.WriteFile(l.Dirs.Under(damageFile), data, 0o644); err != nil {
			return err
		}
		for _, c := range changes {
			if err := c.apply(ctx, l, c.New); err != nil {
				return err
			}
		}
		return nil
	}
}

// mend puts back what damage noted.
func mend(ctx context.Context, l *cluster.Lab) error {
	data, err := os.ReadFile(l.Dirs.Under(damageFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var changes []change
	if err == nil {
		err = json.Unmarshal(data, &changes)
	}
	for _, c := range changes {
		err = errors.Join(err, c.apply(ctx, l, c.Old))
	}
	return errors.Join(err, os.Remove(l.Dirs.Under(damageFile)))
}

func (c change) apply(ctx context.Context, l *cluster.Lab, value string) error {
	argv := append([]string{"bpftool", "map", "delete", "pinned", c.Map, "key", "hex"}, bytesOf(c.Key)...)
	if value != "" {
		argv[2] = "update"
		argv = append(append(argv, "value", "hex"), bytesOf(value)...)
	}
	_, err := l.InAgent(ctx, hurt, argv...)
	return err
}

func bytesOf(digits string) []string {
	var out []string
	for i := 0; i+2 <= len(digits); i += 2 {
		out = append(out, digits[i:i+2])
	}
	return out
}

// readMaps reads the entries of shop/web's IPv4 ClusterIP and all backends.
func readMaps(ctx context.Context, l *cluster.Lab) (maps, error) {
	var m maps
	ip, err := l.Kubectl(ctx, "", "-n", "shop", "get", "svc/web", "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return m, err
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(ip))
	if err != nil {
		return m, err
	}
	all, err := dump(ctx, l, servicesMap)
	if err != nil {
		return m, err
	}
	want := addressAndPort(addr, 80)
	for _, e := range all {
		if strings.HasPrefix(e.Key, want) {
			m.services = append(m.services, e)
		}
	}
	slices.SortFunc(m.services, func(a, b element) int { return a.slotNumber() - b.slotNumber() })
	if m.backends, err = dump(ctx, l, backendsMap); err == nil && len(m.services) < 2 {
		err = fmt.Errorf("service map on %s: %d entries for %s:80", hurt, len(m.services), addr)
	}
	return m, err
}

// dump reads a map with bpftool, whose JSON has every byte as "0x1f".
func dump(ctx context.Context, l *cluster.Lab, path string) ([]element, error) {
	out, err := l.InAgent(ctx, hurt, "bpftool", "-j", "map", "dump", "pinned", path)
	if err != nil {
		return nil, err
	}
	var raw []struct{ Key, Value []string }
	if err := json.Unmarshal([]byte(out), &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []element
	for _, r := range raw {
		key, err1 := digits(r.Key)
		value, err2 := digits(r.Value)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, element{key, value})
	}
	return all, nil
}

func digits(bytes []string) (string, error) {
	var b strings.Builder
	for _, s := range bytes {
		n, err := strconv.ParseUint(s, 0, 8)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%02x", n)
	}
	return b.String(), nil
}
