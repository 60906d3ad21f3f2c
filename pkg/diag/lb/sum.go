package lb

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
)

// Sum is the SHA-256 of the table's canonical form. Tables that say the same
// have the same sum, whatever the order and ids of what they were made from;
// only the id that a lost backend's row points at counts, as it is all that is
// known of it.
func (t Table) Sum() [32]byte {
	s := summer{h: sha256.New()}
	s.bits(t.expanded, t.pods)
	s.number(int(t.Layer))
	s.prefixes(t.prefixes)
	s.number(len(t.health))
	for _, a := range t.health {
		s.address(a)
	}
	s.number(len(t.Rows))
	for i := range t.Rows {
		s.row(&t.Rows[i])
	}
	s.number(len(t.Absent))
	for _, a := range t.Absent {
		s.words(a.Service.Namespace, a.Service.Name, a.Type, string(a.Cause), a.Reason)
	}
	return s.done()
}

// summer writes values so that different ones never give the same bytes: each
// has a fixed size or its length before it.
type summer struct {
	h   hash.Hash
	buf []byte
}

const summerBlock = 1 << 14

func (s *summer) grown() {
	if len(s.buf) >= summerBlock {
		s.h.Write(s.buf)
		s.buf = s.buf[:0]
	}
}

func (s *summer) done() (sum [32]byte) {
	s.h.Write(s.buf)
	s.h.Sum(sum[:0])
	return sum
}

func (s *summer) number(n int) { s.buf = binary.AppendVarint(s.buf, int64(n)) }

func (s *summer) words(ws ...string) {
	for _, w := range ws {
		s.number(len(w))
		s.buf = append(s.buf, w...)
	}
	s.grown()
}

func (s *summer) bits(bs ...bool) {
	var v byte
	for i, b := range bs {
		if b {
			v |= 1 << i
		}
	}
	s.buf = append(s.buf, v)
}

func (s *summer) ip(a netip.Addr) {
	b := a.As16()
	s.bits(a.Is4())
	s.buf = append(s.buf, b[:]...)
	s.words(a.Zone())
}

func (s *summer) address(a Address) {
	s.bits(a.IP.IsValid())
	if a.IP.IsValid() {
		s.ip(a.IP)
	}
	s.number(int(a.Port))
	s.number(int(a.Scope))
	s.words(string(a.Protocol))
}

func (s *summer) prefixes(ps []netip.Prefix) {
	s.number(len(ps))
	for _, p := range ps {
		s.ip(p.Addr())
		s.number(p.Bits())
	}
}

func (s *summer) row(r *Row) {
	s.address(r.Address)
	s.words(r.Type, r.Service.Namespace, r.Service.Name, r.PortName, r.Cluster, r.Optional, string(r.Cause), r.Reason)
	s.bits(r.Expansion, r.Wildcard, r.Global, r.Flags.RangesTold)
	for _, n := range []int{
		r.Counts.Active, r.Counts.Inactive, int(r.Redirect), r.ProxyPort,
		int(r.Flags.Affinity), r.Flags.AffinityTimeout, int(r.Flags.SourceCheck), len(r.Claims),
	} {
		s.number(n)
	}
	s.words(string(r.Flags.External), string(r.Flags.Internal))
	s.prefixes(r.Flags.Ranges)
	for _, c := range r.Claims {
		s.words(c.Service.Namespace, c.Service.Name, c.Type)
	}
	s.entries(r.Entries)
}

func (s *summer) entries(es []Entry) {
	s.number(len(es))
	for i := range es {
		e := &es[i]
		s.address(e.Address)
		s.words(string(e.State), e.Node, e.Zone, e.Optional)
		s.bits(e.Preferred, e.Lost)
		s.number(e.Weight)
		s.number(e.ID)
	}
}
