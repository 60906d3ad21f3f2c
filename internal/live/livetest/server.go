// Package livetest is a Kubernetes API server for tests, as far as the live
// source needs one: lists with pages, selectors and both content types, logs,
// and pods/exec in the real protocols, WebSocket and SPDY. An exec really runs
// its argv on this machine, with nothing on PATH but a shell, the few tools
// that an agent's image has, and stand-ins that replay recorded answers.
package livetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Server is a fake API server. Set its fields before the first request.
type Server struct {
	// NoWebSocket refuses WebSockets, as old proxies do.
	NoWebSocket bool
	// Forbid refuses lists and gets of these resources, by plural name.
	Forbid []string
	// JSONOnly answers in JSON whatever the client prefers.
	JSONOnly bool
	// PageSize, if set, is the most objects in one page.
	PageSize int
	// ExpirePages makes every continue token be refused as expired.
	ExpirePages bool
	// Logs are the logs of containers, by "namespace/pod/container".
	Logs map[string]string
	// OnList, if set, is called before each page of a list.
	OnList func(resource string)

	t    T
	dir  string
	http *httptest.Server
	done chan struct{}

	mu       sync.Mutex
	objects  map[string][]runtime.Object // by API path of the list
	agents   map[string]*Agent           // by "namespace/pod"
	requests []Request
}

// Request is one request as the server saw it.
type Request struct {
	Method, Path string
	Query        string
	Accept       string
	Upgrade      string // "websocket", "SPDY/3.1" or ""
	Served       string // content type, of lists
}

// connection is the key under which a request's context has its net.Conn.
type connection struct{}

// T is what a server needs of a test; a simulated cluster that outlives tests
// has its own.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// New starts a server that ends with the test. At its end every agent's
// recordings must have been asked for, and nothing else.
func New(t T) *Server {
	t.Helper()
	// The directory goes only after the checks: clean-ups run backwards.
	s := &Server{t: t, dir: t.TempDir(), Logs: map[string]string{}, done: make(chan struct{}),
		objects: map[string][]runtime.Object{}, agents: map[string]*Agent{}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, c)
	}
	s.http.Start()
	t.Cleanup(func() {
		close(s.done)
		s.http.CloseClientConnections()
		s.http.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.agents {
			a.check(t)
		}
	})
	return s
}

// Config is a client configuration for the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Requests are the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Add adds objects. Unstructured ones are served under their own group.
func (s *Server) Add(objects ...runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		path := ""
		switch o := o.(type) {
		case *corev1.Service:
			path = "/api/v1/services"
		case *corev1.Node:
			path = "/api/v1/nodes"
		case *corev1.Pod:
			path = "/api/v1/pods"
		case *corev1.ConfigMap:
			path = "/api/v1/configmaps"
		case *appsv1.DaemonSet:
			path = "/apis/apps/v1/daemonsets"
		case *discoveryv1.EndpointSlice:
			path = "/apis/discovery.k8s.io/v1/endpointslices"
		case *unstructured.Unstructured:
			plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			path = "/apis/" + o.GetAPIVersion() + "/" + plural.Resource
		default:
			s.t.Fatalf("livetest: no place for a %T", o)
		}
		s.objects[path] = append(s.objects[path], o)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(klog.NewContext(r.Context(), logr.Discard()))
	seen := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Accept: r.Header.Get("Accept"), Upgrade: r.Header.Get("Upgrade")}
	// Noted before it is served: a client may go on before the handler returns.
	s.mu.Lock()
	at := len(s.requests)
	s.requests = append(s.requests, seen)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[at].Served = w.Header().Get("Content-Type")
	}()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": "v1.34.3"})
	case len(path) == 7 && path[4] == "pods" && path[6] == "log":
		s.log(w, r, path[3]+"/"+path[5])
	case len(path) == 7 && path[4] == "pods" && path[6] == "exec":
		s.exec(w, r, path[3]+"/"+path[5])
	case len(path) == 6 && path[4] == "configmaps":
		s.configMap(w, path[3], path[5])
	default:
		s.list(w, r)
	}
}

func (s *Server) log(w http.ResponseWriter, r *http.Request, pod string) {
	log, ok := s.Logs[pod+"/"+r.URL.Query().Get("container")]
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no log of "+pod)
		return
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		lines := strings.SplitAfter(log, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		log = strings.Join(lines[max(0, len(lines)-n):], "")
	}
	_, _ = w.Write([]byte(log))
}

func (s *Server) configMap(w http.ResponseWriter, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects["/api/v1/configmaps"] {
		if m, ok := o.(*corev1.ConfigMap); ok && m.Namespace == namespace && m.Name == name {
			c := m.DeepCopy()
			c.APIVersion, c.Kind = "v1", "ConfigMap"
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(c)
			return
		}
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps \""+name+"\" not found")
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
}

// String names the request for a failing test.
func (r Request) String() string { return fmt.Sprintf("%s %s?%s", r.Method, r.Path, r.Query) }
