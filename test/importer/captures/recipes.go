package captures

import "github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"

// Recipe says which recording a fixture is made from.
type Recipe struct {
	// Name is the fixture's folder.
	Name string
	// From is the recording's folder, slash-separated, inside the captures.
	From string
	// Node names the node whose commands lie in the recording itself instead
	// of in a folder of their own; "" where there are node folders.
	Node string
	// Both lists the topics kept as text although JSON was recorded too.
	Both []source.Topic
}

// Recipes are the fixtures of this repository, sorted by name.
func Recipes() []Recipe {
	return []Recipe{
		{Name: "apiserver-unreachable", From: "broken_k8sServiceHost-unreachable"},
		// Both recordings of terminating backends were made on the second
		// worker alone; its address is the one on their NodePort rows.
		{Name: "kpr-all-backends-terminating", From: "broken_backend-terminating/all-terminating", Node: "kpr-w2"},
		{Name: "kpr-clean", From: "kpr-true_clean"},
		{Name: "kpr-damaged-map", From: "broken_damaged-map-full",
			Both: []source.Topic{source.Status, source.ServiceList, source.MapList}},
		{Name: "kpr-false-kube-proxy", From: "kpr-false_kube-proxy-iptables"},
		{Name: "kpr-terminating-backends", From: "broken_backend-terminating/two-active-one-terminating", Node: "kpr-w2"},
		{Name: "kpr-with-kube-proxy", From: "kpr-true_kube-proxy-still-there"},
	}
}
