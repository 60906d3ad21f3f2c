package node

import (
	"path/filepath"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

type service struct {
	name string
	argv []string
}

// controlPlane lists the servers of the control-plane node. They are plain
// processes and not static pods: a plugin that looks for kube-proxy must not
// depend on how the rest was started.
func controlPlane(d place.Dirs, bin string) []service {
	pki := func(name string) string { return d.Under("pki", name) }
	exe := func(name string) string { return filepath.Join(bin, name) }
	conf := func(name string) []string {
		c := pki(name + ".conf")
		return []string{"--kubeconfig=" + c, "--authentication-kubeconfig=" + c, "--authorization-kubeconfig=" + c, "--leader-elect=false", "--bind-address=127.0.0.1", "--v=1"}
	}
	return []service{
		{"etcd", []string{exe("etcd"), "--name=lab", "--data-dir=/var/lib/etcd",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=warn"}},
		{"kube-apiserver", []string{exe("kube-apiserver"), "--advertise-address=" + place.APIHost, "--bind-address=0.0.0.0", "--secure-port=" + place.APIPort,
			"--etcd-servers=http://127.0.0.1:2379", "--client-ca-file=" + pki("ca.crt"),
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"), "--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
			"--kubelet-certificate-authority=" + pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
			"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--service-cluster-ip-range=" + place.ServiceCIDR,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--profiling=false", "--v=1",
			"--audit-policy-file=" + d.Under("audit", "policy.yaml"), "--audit-log-path=" + d.Audit(), "--audit-log-mode=blocking", "--audit-log-maxsize=2000"}},
		{"kube-controller-manager", append([]string{exe("kube-controller-manager"), "--root-ca-file=" + pki("ca.crt"), "--client-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"), "--service-account-private-key-file=" + pki("sa.key"),
			"--use-service-account-credentials=true", "--allocate-node-cidrs=true", "--cluster-cidr=" + place.PodCIDRs, "--service-cluster-ip-range=" + place.ServiceCIDR}, conf("kcm")...)},
		{"kube-scheduler", append([]string{exe("kube-scheduler")}, conf("scheduler")...)},
	}
}
