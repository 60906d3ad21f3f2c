package fact

import (
	"errors"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts of the API about Services. Those called After were read again when the
// agents had answered: what differs from an agent in both readings differs.
var (
	Services            = Read(source.Services, objects[corev1.Service])
	ServicesAfter       = Read(source.ServicesAfter, objects[corev1.Service])
	EndpointSlices      = Read(source.EndpointSlices, objects[discoveryv1.EndpointSlice])
	EndpointSlicesAfter = Read(source.EndpointSlicesAfter, objects[discoveryv1.EndpointSlice])
	Endpoints           = Read(source.Endpoints, objects[corev1.Endpoints]) //nolint:staticcheck // old evidence holds nothing else
)

// Facts of agents and their maps about Services.
var (
	// AgentFrontends is `service list`.
	AgentFrontends = Read(source.ServiceList, func(a source.Artifact) ([]lb.Frontend, error) {
		if a.Stem == cilium.ServiceTablesStem {
			return cilium.DecodeServiceTablesJSON(a.Data)
		}
		return byFormat(cilium.DecodeServiceListJSON, cilium.DecodeServiceListText)(a)
	})
	// MapRows is `bpf lb list`.
	MapRows = Read(source.MapList, byFormat(cilium.DecodeMapListJSON, cilium.DecodeMapListText))
	// MapSlots is `bpf lb list --frontends`.
	MapSlots = Read(source.MapFrontends, byFormat(cilium.DecodeMapFrontendsJSON, cilium.DecodeMapFrontendsText))
	// MapRanges is `bpf lb list --source-ranges`.
	MapRanges = Read(source.MapRanges, byFormat(cilium.DecodeMapRangesJSON, cilium.DecodeMapRangesText))
	// FrontendsTable is the agent's table of frontends with the outcome of each write.
	FrontendsTable = Read(source.FrontendsTable, byFormat(cilium.DecodeFrontendsTableJSON, cilium.DecodeFrontendsTableText))
	// MapsDump is `lb/maps-dump` of the agent's shell.
	MapsDump = Read(source.MapsDump, func(a source.Artifact) (lb.Dump, error) { return cilium.DecodeMapsDump(a.Data) })
)

// The three layers of load balancing, and what they are made with.
var (
	// Index is what the API wants of load balancing.
	Index = Define("lb-index", false, []Named{Services, EndpointSlices, Endpoints, Nodes, Pods}, func(v *View) (*lb.Index, error) {
		services, err := Services.From(v)
		if err != nil {
			return nil, err
		}
		slices, err := EndpointSlices.From(v)
		return index(v, services, slices, err)
	})
	// IndexAfter is the same from the second reading.
	IndexAfter = Define("lb-index-after", false, []Named{ServicesAfter, EndpointSlicesAfter, Services, Endpoints, Nodes, Pods}, func(v *View) (*lb.Index, error) {
		after, err := EndpointSlicesAfter.From(v)
		if err != nil {
			return nil, err
		}
		services, err := ServicesAfter.From(v)
		if errors.Is(err, source.ErrAbsent) {
			services, err = Services.From(v) // recordings may hold the slices alone
		}
		if err != nil {
			return nil, err
		}
		return index(v, services, after, nil)
	})
	// Capabilities are what the agent of a node can do.
	Capabilities = Define("capabilities", true, []Named{Status, Agents}, capabilities)
	// NodeView is what a node and its agent have to do with Services.
	NodeView = Define("node-view", true, []Named{Nodes, Status, Config, AgentFrontends, MapRows, Capabilities}, nodeView)
	// Desired is what a node should hold.
	Desired = Define("desired", true, []Named{Index, NodeView, Capabilities}, func(v *View) (lb.Table, error) {
		return desired(v, Index)
	})
	// Asked is Desired or, where no endpoints were read, the frontends that
	// Services ask for, with their settings and without any backend.
	Asked = Define("asked", true, []Named{Desired, Services, NodeView, Capabilities}, asked)
	// DesiredAfter is what it should hold by the second reading.
	DesiredAfter = Define("desired-after", true, []Named{IndexAfter, NodeView, Capabilities}, func(v *View) (lb.Table, error) {
		return desired(v, IndexAfter)
	})
	// AgentTable is what a node's agent believes.
	AgentTable = Define("agent-table", true, []Named{AgentFrontends, Desired, NodeView, Capabilities}, func(v *View) (lb.Table, error) {
		frontends, err := AgentFrontends.From(v)
		if err != nil {
			return lb.Table{}, err
		}
		view, _ := NodeView.From(v)
		can, _ := Capabilities.From(v)
		return lb.FromAgent(agentWithin(v, frontends), view, can), nil
	})
	// KernelTable is what a node's maps hold.
	KernelTable = Define("kernel-table", true, []Named{MapRows, MapSlots, MapRanges, MapsDump, Desired, AgentFrontends, NodeView, Capabilities}, kernelTable)
)

// byFormat picks the decoder for an artifact's format.
func byFormat[T any](json, text func([]byte) (T, error)) func(source.Artifact) (T, error) {
	return func(a source.Artifact) (T, error) {
		if a.Format == source.JSON {
			return json(a.Data)
		}
		return text(a.Data)
	}
}

// index joins the objects. Endpoints stand in for slices only where no slices
// were read at all.
func index(v *View, services []corev1.Service, slices []discoveryv1.EndpointSlice, sliceErr error) (*lb.Index, error) {
	in := lb.Inputs{Services: inside(v, services), Slices: inside(v, slices)}
	in.Nodes, _ = Nodes.From(v)
	in.Pods, _ = Pods.From(v)
	in.Pods = inside(v, in.Pods)
	var err error
	in.Endpoints, err = Endpoints.From(v)
	if sliceErr != nil {
		if err != nil {
			return nil, sliceErr
		}
		in.UseEndpoints = true
	}
	return lb.NewIndex(in), nil
}

func capabilities(v *View) (lb.Capabilities, error) {
	version := ""
	st, _ := Status.From(v)
	if st != nil {
		version = st.Version
	}
	if version == "" {
		agents, _ := Agents.From(v)
		version = cilium.VersionOfImage(agents[v.Node()].Image)
	}
	has := cilium.CapabilitiesOf(version)
	c := lb.Capabilities{
		ProtocolInRows: has.Has(cilium.ProtocolInRows), WildcardRows: has.Has(cilium.WildcardRows),
		SurrogatesOnlyInAgent: has.Has(cilium.SurrogatesOnly), Terminating: has.Has(cilium.Terminating), InternalPolicy: has.Has(cilium.InternalPolicy),
		NodesSpared: has.Has(cilium.NodesSpared),
	}
	if st != nil && len(st.Annotations) > 0 {
		c.Exposure = lb.AnswerOf(slices.Contains(st.Annotations, "service.cilium.io/type"))
	}
	return c, nil
}

// nodeView never fails: what is not known of a node stays unknown in it.
func nodeView(v *View) (lb.NodeView, error) {
	view := lb.NodeView{Name: v.Node()}
	nodes, _ := Nodes.From(v)
	if i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == v.Node() }); i >= 0 {
		view = lb.View(&nodes[i])
	}
	if st, _ := Status.From(v); st != nil {
		view = withStatus(view, st)
	}
	if cfg, err := Config.From(v); err == nil {
		view.ProxyName = cfg.Data["k8s-service-proxy-name"]
		view.IPv4, view.IPv6 = told(cfg, "enable-ipv4"), told(cfg, "enable-ipv6")
		view.Topology = told(cfg, "enable-service-topology")
	}
	// What the status does not tell, rows that are there do.
	can, _ := Capabilities.From(v)
	if frontends, err := AgentFrontends.From(v); err == nil {
		return view.Seen(lb.FromAgent(frontends, view, can)), nil
	}
	if rows, err := MapRows.From(v); err == nil {
		return view.Seen(lb.FromKernel(rows, nil, nil, nil, view, can)), nil
	}
	return view, nil
}

func withStatus(view lb.NodeView, st *agent.Status) lb.NodeView {
	if len(st.Devices) > 0 {
		for _, d := range st.Devices {
			if len(d.Addresses) == 0 { // a form that lists names only
				return serving(view, st)
			}
		}
		lists := make([][]netip.Addr, 0, len(st.Devices))
		for _, d := range st.Devices {
			lists = append(lists, d.Addresses)
		}
		view = view.WithDevices(lists...)
	}
	return serving(view, st)
}

func serving(view lb.NodeView, st *agent.Status) lb.NodeView {
	view.NodePort, view.LoadBalancer = answer(st.NodePort), answer(st.LoadBalancer)
	view.ExternalIPs, view.HostPort = answer(st.ExternalIPs), answer(st.HostPort)
	if st.NodePortMax > 0 && st.NodePortMax <= 65535 && st.NodePortMin >= 0 && st.NodePortMin <= st.NodePortMax {
		view.NodePortMin, view.NodePortMax = uint16(st.NodePortMin), uint16(st.NodePortMax)
	}
	return view
}

func answer(s agent.Switch) lb.Answer {
	switch s {
	case agent.On:
		return lb.Yes
	case agent.Off:
		return lb.No
	}
	return lb.Unknown
}

func told(s Settings, key string) lb.Answer {
	switch s.Data[key] {
	case "true":
		return lb.Yes
	case "false":
		return lb.No
	}
	return lb.Unknown
}

func desired(v *View, from Key[*lb.Index]) (lb.Table, error) {
	x, err := from.From(v)
	if err != nil {
		return lb.Table{}, err
	}
	view, _ := NodeView.From(v)
	can, _ := Capabilities.From(v)
	return x.Desired(view, can), nil
}

func asked(v *View) (lb.Table, error) {
	if want, err := Desired.From(v); err == nil {
		return want, nil
	}
	services, err := Services.From(v)
	if err != nil {
		return lb.Table{}, err
	}
	view, _ := NodeView.From(v)
	can, _ := Capabilities.From(v)
	return lb.NewIndex(lb.Inputs{Services: services}).Desired(view, can), nil
}

// kernelTable needs the rows; counts, states and ranges come where they were
// read. Ranges that were not read stay untold.
func kernelTable(v *View) (lb.Table, error) {
	rows, err := MapRows.From(v)
	dump, dumpErr := MapsDump.From(v)
	if err != nil && dumpErr != nil {
		return lb.Table{}, err
	}
	slots, _ := MapSlots.From(v)
	extra := &dump
	if dumpErr != nil {
		extra = nil
		if ranges, err := MapRanges.From(v); err == nil {
			extra = &lb.Dump{SourceRanges: append([]lb.SourceRange{}, ranges...)} // none read is not: not read
		}
	}
	view, _ := NodeView.From(v)
	can, _ := Capabilities.From(v)
	return lb.FromKernel(mapWithin(v, rows), slots, extra, nil, view, can), nil
}
