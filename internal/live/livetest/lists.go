package livetest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// list serves a page of a list, of all namespaces or of one.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	path, namespace := r.URL.Path, ""
	if before, after, ok := strings.Cut(path, "/namespaces/"); ok {
		ns, rest, _ := strings.Cut(after, "/")
		path, namespace = before+"/"+rest, ns
	}
	resource := path[strings.LastIndexByte(path, '/')+1:]
	if s.OnList != nil {
		s.OnList(resource)
	}
	if slices.Contains(s.Forbid, resource) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, resource+" is forbidden: User \"test\" cannot list resource")
		return
	}
	s.mu.Lock()
	objects, served := s.objects[path]
	s.mu.Unlock()
	page := newPage(path)
	if page == nil && !served {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	chosen, next, expired := s.choose(objects, namespace, r)
	if expired {
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		return
	}
	s.write(w, r, page, chosen, next)
}

func (s *Server) choose(objects []runtime.Object, namespace string, r *http.Request) (chosen []runtime.Object, next string, expired bool) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		s.t.Errorf("livetest: label selector: %v", err)
	}
	for _, o := range objects {
		m, _ := meta.Accessor(o)
		if (namespace == "" || m.GetNamespace() == namespace) && selector.Matches(labels.Set(m.GetLabels())) {
			chosen = append(chosen, o)
		}
	}
	from := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		if s.ExpirePages {
			return nil, "", true
		}
		data, _ := base64.StdEncoding.DecodeString(token)
		from, _ = strconv.Atoi(string(data))
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if s.PageSize > 0 && limit > 0 {
		limit = min(limit, s.PageSize)
	}
	chosen = chosen[min(from, len(chosen)):]
	if limit > 0 && len(chosen) > limit {
		chosen, next = chosen[:limit], base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(from+limit)))
	}
	// Setting a list's items may write into them.
	chosen = slices.Clone(chosen)
	for i, o := range chosen {
		chosen[i] = o.DeepCopyObject()
	}
	return chosen, next, false
}

// newPage is an empty list of the typed objects under a path, nil if there
// are none.
func newPage(path string) runtime.Object {
	switch path {
	case "/api/v1/services":
		return &corev1.ServiceList{}
	case "/api/v1/nodes":
		return &corev1.NodeList{}
	case "/api/v1/pods":
		return &corev1.PodList{}
	case "/apis/apps/v1/daemonsets":
		return &appsv1.DaemonSetList{}
	case "/apis/discovery.k8s.io/v1/endpointslices":
		return &discoveryv1.EndpointSliceList{}
	}
	return nil
}

// write encodes a page as the client prefers it: protobuf where it may.
func (s *Server) write(w http.ResponseWriter, r *http.Request, page runtime.Object, items []runtime.Object, next string) {
	if page == nil {
		list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"continue": next}, "items": items}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	accessor, err := meta.ListAccessor(page)
	if err == nil {
		accessor.SetContinue(next)
		accessor.SetResourceVersion("4711")
		err = meta.SetList(page, items)
	}
	media := runtime.ContentTypeJSON
	if !s.JSONOnly && strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		media = runtime.ContentTypeProtobuf
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	kinds, _, kindErr := scheme.Scheme.ObjectKinds(page)
	if err != nil || kindErr != nil || !ok {
		s.t.Errorf("livetest: list of %T: %v %v", page, err, kindErr)
		return
	}
	w.Header().Set("Content-Type", media)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Group: kinds[0].Group, Version: kinds[0].Version})
	if err := encoder.Encode(page, w); err != nil {
		s.t.Errorf("livetest: list of %T: %v", page, err)
	}
}
