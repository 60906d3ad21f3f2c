package agent

import "time"

// APIProbe is what became of one request to the API server from a node's host
// network, at the address that the node's agent dials.
type APIProbe struct {
	Host string `json:"host"`
	Port string `json:"port"`
	// By says where the address is from: "environment of the agent" or the key
	// of cilium-config.
	By string `json:"by"`
	// Connected: TCP stands. Verified: its certificate is the cluster's and
	// names Host.
	Connected bool `json:"connected"`
	Verified  bool `json:"verified"`
	// Status is the HTTP status of an authenticated GET /readyz, 0 without one.
	// 401 and 403 too come from an API server.
	Status int           `json:"status,omitempty"`
	Error  string        `json:"error,omitempty"` // why it went no further, "" if Status is 200
	Took   time.Duration `json:"took"`
}

// Answers tells whether an API server of this cluster answered.
func (p APIProbe) Answers() bool { return p.Verified && p.Status > 0 && p.Status < 500 }
