package cilium

import (
	"bytes"
	"encoding/json"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// ServiceTablesStem names the form of source.ServiceList that holds one
// namespace only, see ServiceTables.
const ServiceTablesStem = "shell-db-prefix-frontends"

// serviceTables lists one namespace of the tables that `service list` is made
// of since 1.18: frontends with their backends, then Services with their
// settings. With thousands of Services the whole list is tens of megabytes.
const serviceTables = `c=cilium-dbg
$c shell -- db/prefix --format=json --index=service frontends "$1/" && $c shell -- db/prefix --format=json services "$1/"`

// Within is the same question about one namespace alone; false where there is
// none. The namespace has to be a DNS label.
func (a Ask) Within(namespace string) (Ask, bool) {
	if namespace == "" {
		return a, false
	}
	switch a.Topic {
	case source.ServiceList:
		a = asJSON(a.Topic, ServiceTablesStem).By("cilium-dbg shell -- db/prefix --format=json --index=service frontends "+namespace+"/, and services",
			"sh", "-c", serviceTables, "kpr", namespace)
	case source.FrontendsTable:
		needs := a.Needs
		a = asText(a.Topic, string(a.Topic), Binary, "shell", "--", "db/prefix", "--index=service", "frontends", namespace+"/")
		a.Needs = needs
	default:
		return a, false
	}
	a.Needs, a.MayBeEmpty = HasLBTables, true
	return a, true
}

// DecodeServiceTablesJSON reads the rows of both tables, one object after the
// other, and gives what `service list -o json` would, without ids. An answer
// without any object is a namespace without Services.
func DecodeServiceTablesJSON(data []byte) ([]lb.Frontend, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return []lb.Frontend{}, nil
	}
	d, err := openDocument("tables of frontends and services", data)
	if d == nil {
		return nil, err
	}
	var rows []lb.TableRow
	settings := map[lb.Name]tableService{}
	err = d.run(func(line int, raw json.RawMessage) {
		var kind struct{ Address, Name json.RawMessage }
		if !d.into(line, raw, &kind) {
			return
		}
		if !absent(kind.Address) {
			if row, ok := d.tableRow(line, raw); ok {
				rows = append(rows, row)
			}
			return
		}
		var s tableService
		d.optional(line, raw, &s)
		_, name, nameErr := tableName(kind.Name)
		if nameErr != nil {
			d.errs.add(line, string(kind.Name), nameErr.Error())
			return
		}
		settings[name] = s
	})
	fs := make([]lb.Frontend, 0, len(rows))
	for _, r := range rows {
		s := settings[r.Service]
		fs = append(fs, lb.Frontend{
			Address: r.Address, Type: r.Type, Service: r.Service, Cluster: r.Cluster, Backends: r.Backends,
			External: s.ExtTrafficPolicy, Internal: s.IntTrafficPolicy, NAT: s.NatPolicy, HealthCheckNodePort: s.HealthCheckNodePort,
		})
	}
	sortFrontends(fs)
	return fs, err
}

type tableService struct {
	ExtTrafficPolicy, IntTrafficPolicy, NatPolicy string
	HealthCheckNodePort                           int
}
