package live

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testNonce = "00112233445566778899aabbccddeeff"

// stream spells frames with N for the nonce.
func stream(s string) string { return strings.ReplaceAll(s, "N", testNonce) }

func TestFrames(t *testing.T) {
	whole := func(data string, code int) frame {
		return frame{data: []byte(data), begun: true, ended: true, code: code}
	}
	tests := []struct {
		name, stream string
		want         []frame
	}{
		{"nothing", "", []frame{{}, {}}},
		{"both", "\nN hello cilium\n\nN begin 0\na\nN end 0 0\n\nN begin 1\n\nN end 1 7\n", []frame{whole("a", 0), whole("", 7)}},
		{"greeting", "motd\n\nN begin 0\na\n\nN end 0 0\n", []frame{whole("a\n", 0), {}}},
		{"cut in data", "\nN begin 0\nabc", []frame{{data: []byte("abc"), begun: true}, {}}},
		{"cut in the end line", "\nN begin 0\nabc\nN end 0 0", []frame{{data: []byte(stream("abc\nN end 0 0")), begun: true}, {}}},
		{"cut in the exit code", "\nN begin 0\nabc\nN end 0 1", []frame{{data: []byte(stream("abc\nN end 0 1")), begun: true}, {}}},
		{"cut in the begin line", "\nN begin 0", []frame{{}, {}}},
		{"foreign end", "\nN begin 0\na\nN end 1 0\nb\nN end 0 0\n", []frame{whole(stream("a\nN end 1 0\nb"), 0), {}}},
		{"begin within", "\nN begin 0\na\nN begin 1\nb\nN end 0 0\n", []frame{whole(stream("a\nN begin 1\nb"), 0), {}}},
		{"unknown ids", "\nN begin 9\na\nN end 9 0\n\nN begin -1\n\nN begin x\n", []frame{{}, {}}},
		{"late", "\nN begin 0\n\nN end 0 late\n", []frame{{data: []byte{}, begun: true, ended: true, late: true}, {}}},
		{"no code", "\nN begin 0\na\nN end 0 \n", []frame{{data: []byte("a"), begun: true}, {}}},
	}
	for _, tt := range tests {
		got, _ := frames([]byte(stream(tt.stream)), testNonce, 2)
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(frame{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	if _, binary := frames([]byte(stream("\nN hello cilium\n")), testNonce, 0); binary != "cilium" {
		t.Errorf("binary %q", binary)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(stream("\nN begin 0\na\nN end 0 0\n\nN begin 1\n")), []byte("x"))
	f.Fuzz(func(t *testing.T, junk, data []byte) {
		_, _ = frames(junk, testNonce, 3)
		if strings.Contains(string(data), testNonce) || strings.Contains(string(junk), testNonce) {
			return
		}
		s := string(junk) + stream("\nN begin 1\n") + string(data) + stream("\nN end 1 3\n") + string(junk)
		got, _ := frames([]byte(s), testNonce, 3)
		if !got[1].ended || got[1].code != 3 || string(got[1].data) != string(data) {
			t.Errorf("frame %+v, want %q", got[1], data)
		}
	})
}
