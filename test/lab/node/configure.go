package node

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// containerd 1.6 keeps pod network namespaces under /var/run/netns unless told
// otherwise, which is where Cilium's chart looks for them. The capability to
// lower OOM scores is missing on many build machines.
const containerdTOML = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:lab"
  restrict_oom_score_adj = true
  max_concurrent_downloads = 1
  netns_mounts_under_state_dir = false
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`

const kubeletYAML = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true, cacheTTL: 2m0s}, x509: {clientCAFile: /etc/kubernetes/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: /etc/kubernetes/kubelet.crt
tlsPrivateKeyFile: /etc/kubernetes/kubelet.key
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
resolvConf: /etc/kubernetes/resolv.conf
evictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", memory.available: "100Mi"}
imageGCHighThresholdPercent: 100
maxPods: 250
serializeImagePulls: false
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
`

// configure puts a node's keys and settings where its programs read them.
func configure(d place.Dirs, n place.Node) error {
	files := map[string]string{"containerd.toml": containerdTOML, "kubelet.yaml": kubeletYAML, "resolv.conf": "nameserver 127.0.0.1\n"}
	for to, from := range map[string]string{"ca.crt": "ca.crt", "kubelet.crt": n.Name + ".crt", "kubelet.key": n.Name + ".key", "kubelet.conf": n.Name + ".conf"} {
		data, err := os.ReadFile(d.Under("pki", from))
		if err != nil {
			return err
		}
		files[to] = string(data)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join("/etc/kubernetes", name), []byte(data), 0o600); err != nil {
			return fmt.Errorf("settings of the node: %w", err)
		}
	}
	return nil
}
