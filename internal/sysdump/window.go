package sysdump

import (
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"
)

// before is how long before the dump's own time a change may still have been
// on its way to the nodes when they were asked.
const before = time.Minute

// findMoving are the Services with an EndpointSlice that was written shortly
// before the dump began, or while it was made.
func (s *Source) findMoving() map[string]bool {
	moving := map[string]bool{}
	began := s.recorded()
	member := s.file("k8s-endpointslices", ".yaml")
	if size, ok := s.archive.Size(member); !ok || size > maxAnswer || began.IsZero() {
		return moving
	}
	var list struct {
		Items []discoveryv1.EndpointSlice `json:"items"`
	}
	if yaml.Unmarshal(s.archive.one(member), &list) != nil {
		return moving
	}
	for i := range list.Items {
		o := &list.Items[i]
		name := o.Labels[discoveryv1.LabelServiceName]
		for _, f := range o.ManagedFields {
			if f.Time != nil && f.Time.After(began.Add(-before)) && name != "" {
				moving["service/"+o.Namespace+"/"+name] = true
			}
		}
	}
	return moving
}
