package lb

import "slices"

// meet holds for addresses that are the same, or are so but for a protocol
// that one of them does not tell.
func meet(a, b Address) bool {
	return a == b || a.IP == b.IP && a.Port == b.Port && a.Scope == b.Scope && (a.Protocol == ANY || b.Protocol == ANY)
}

// pairing says which rows of one IP, port and scope speak of the same.
type pairing struct {
	pairs        []couple
	onlyA, onlyB []*Row
}

type couple struct{ xs, ys []*Row }

// pairUp pairs rows of the same protocol. What is left on one side goes with
// the other's row of any protocol, if it has one: up to 1.16 TCP and UDP share
// a row, and 1.17 keeps such rows beside new ones.
func pairUp(as, bs []*Row) pairing {
	p := pairByProtocol(as, bs)
	anyA, anyB := protocolless(as), protocolless(bs)
	var joint couple
	if anyA != nil {
		joint.xs = []*Row{anyA}
		p.onlyA = without(p.onlyA, anyA)
		joint.ys, p.onlyB = append(joint.ys, without(p.onlyB, anyB)...), nil
	}
	if anyB != nil {
		joint.ys = append(joint.ys, anyB)
		joint.xs, p.onlyA = append(joint.xs, p.onlyA...), nil
		p.onlyB = without(p.onlyB, anyB)
	}
	switch {
	case len(joint.xs)+len(joint.ys) == 0:
	case len(joint.xs) > 0 && len(joint.ys) > 0:
		p.pairs = append(p.pairs, joint)
	case len(p.pairs) > 0:
		// A row without protocol beside the ones that it has become.
		for _, c := range p.pairs {
			joint.xs, joint.ys = append(joint.xs, c.xs...), append(joint.ys, c.ys...)
		}
		p.pairs = []couple{joint}
	default:
		p.onlyA, p.onlyB = append(p.onlyA, joint.xs...), append(p.onlyB, joint.ys...)
	}
	return p
}

// pairByProtocol leaves rows without protocol alone.
func pairByProtocol(as, bs []*Row) pairing {
	p := pairing{onlyB: slices.Clone(bs)}
	for _, x := range as {
		i := slices.IndexFunc(p.onlyB, func(y *Row) bool { return y.Address.Protocol == x.Address.Protocol })
		if i < 0 || x.Address.Protocol == ANY {
			p.onlyA = append(p.onlyA, x)
			continue
		}
		p.pairs = append(p.pairs, couple{[]*Row{x}, []*Row{p.onlyB[i]}})
		p.onlyB = slices.Delete(p.onlyB, i, i+1)
	}
	return p
}

func protocolless(rows []*Row) *Row {
	for _, r := range rows {
		if r.Address.Protocol == ANY {
			return r
		}
	}
	return nil
}

func without(rows []*Row, r *Row) []*Row {
	return slices.DeleteFunc(rows, func(x *Row) bool { return x == r })
}
