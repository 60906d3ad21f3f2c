package states

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func TestStatesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] || s.Doc == "" {
			t.Errorf("state %q: twice or without a word on it", s.Name)
		}
		seen[s.Name] = true
		if (s.Enter == nil) != (s.Leave == nil) {
			t.Errorf("state %s: what can be entered can be left", s.Name)
		}
		if s.Enter == nil && s.Base.Equal(onKPR()) && s.Name != "kpr" {
			t.Errorf("state %s: nothing but kpr", s.Name)
		}
	}
}

// A key of the service map is address, port in network order, slot in the
// machine's, protocol, scope.
func TestSlotOfAKey(t *testing.T) {
	key := addressAndPort(netip.MustParseAddr("10.96.0.10"), 80) + "02000600" + "0000"
	if !strings.HasPrefix(key, "0a60000a0050") {
		t.Fatalf("key %s", key)
	}
	if n := (element{Key: key}).slotNumber(); n != 2 {
		t.Errorf("slot %d", n)
	}
	if got := strings.Join(bytesOf("0a60"), " "); got != "0a 60" {
		t.Error(got)
	}
	if got, err := digits([]string{"0x0a", "0xff"}); err != nil || got != "0aff" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := hex.DecodeString(key); err != nil {
		t.Error(err)
	}
}
