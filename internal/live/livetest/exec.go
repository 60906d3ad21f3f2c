package livetest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// streams are the server's ends of an exec.
type streams struct {
	stdout, stderr, status io.Writer
	close                  func()
}

// exec serves pods/exec over a WebSocket (v5) or SPDY (v4).
func (s *Server) exec(w http.ResponseWriter, r *http.Request, pod string) {
	s.mu.Lock()
	agent := s.agents[pod]
	s.mu.Unlock()
	websocket := wsstream.IsWebSocketRequest(r)
	switch {
	case agent == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "pods \""+pod+"\" not found")
		return
	case websocket && s.NoWebSocket:
		http.Error(w, "upgrade not supported here", http.StatusBadRequest)
		return
	}
	fault := agent.fault()
	if fault == Refuse {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "pods \""+pod+"\" is forbidden: User \"test\" cannot create resource \"pods/exec\"")
		return
	}
	open := openSPDY
	if websocket {
		open = openWebSocket
	}
	c, err := open(w, r)
	if err != nil {
		s.t.Errorf("livetest: exec: %v", err)
		return
	}
	defer c.close()
	switch fault {
	case Hang:
		<-s.done
		return
	case Mute:
		return
	case Break:
		c.stdout = &breaking{w: c.stdout, left: agent.BreakAfter, snap: func() { drop(r) }}
	case Leave:
		c.stdout = &breaking{w: c.stdout, left: agent.BreakAfter, snap: c.close}
	}
	code := agent.run(s.t, r.URL.Query()["command"], c.stdout, c.stderr)
	writeStatus(c.status, code)
}

// drop ends the request's TCP connection without a word of the protocol. What
// was sent before still arrives; a reset could overtake it.
func drop(r *http.Request) {
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		_ = c.Close()
	}
}

// breaking ends the connection once so many bytes have gone over it.
type breaking struct {
	w    io.Writer
	left int
	snap func()
}

func (b *breaking) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	_, _ = b.w.Write(p[:n])
	if b.left -= n; b.left == 0 {
		b.snap()
		return n, errors.New("connection broken by the test")
	}
	return n, nil
}

func openWebSocket(w http.ResponseWriter, r *http.Request) (*streams, error) {
	out := wsstream.WriteChannel
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {
		Binary: true, Channels: []wsstream.ChannelType{wsstream.ReadChannel, out, out, out, wsstream.ReadChannel}}})
	conn.SetIdleTimeout(time.Minute)
	_, ch, err := conn.Open(w, r)
	if err != nil {
		return nil, err
	}
	// An empty message tells the client that the streams stand.
	_, _ = ch[remotecommand.StreamStdOut].Write(nil)
	return &streams{ch[remotecommand.StreamStdOut], ch[remotecommand.StreamStdErr], ch[remotecommand.StreamErr],
		sync.OnceFunc(func() { _ = conn.Close() })}, nil
}

func openSPDY(w http.ResponseWriter, r *http.Request) (*streams, error) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		return nil, err
	}
	want := 1
	for _, flag := range []string{"stdin", "stdout", "stderr"} {
		if on, _ := strconv.ParseBool(r.URL.Query().Get(flag)); on {
			want++
		}
	}
	type named struct {
		kind string
		httpstream.Stream
	}
	came := make(chan named, want)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(st httpstream.Stream, _ <-chan struct{}) error {
		came <- named{st.Headers().Get(corev1.StreamType), st}
		return nil
	})
	if conn == nil {
		return nil, errors.New("SPDY upgrade failed")
	}
	c := &streams{close: sync.OnceFunc(func() { _ = conn.Close() })}
	for range want {
		select {
		case st := <-came:
			switch st.kind {
			case corev1.StreamTypeStdout:
				c.stdout = st
			case corev1.StreamTypeStderr:
				c.stderr = st
			case corev1.StreamTypeError:
				c.status = st
			}
		case <-time.After(5 * time.Second):
			c.close()
			return nil, errors.New("SPDY streams did not come")
		}
	}
	return c, nil
}

// writeStatus tells the exit code as protocol v4 and later do.
func writeStatus(w io.Writer, code int) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: "command terminated with non-zero exit code",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}}}
	}
	data, _ := json.Marshal(status)
	_, _ = w.Write(data)
}
