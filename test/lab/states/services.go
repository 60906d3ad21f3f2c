package states

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

func serviceFaults() []State {
	return []State{
		objects("no-endpoints", "Service shop/nobody whose selector matches no pod",
			service("nobody", "", "app: does-not-exist", 80, "8080"), []string{"svc/nobody"},
			Expect{Rule: "api-no-backends", Subject: "service/shop/nobody"}),
		objects("port-names", "Service shop/misnamed wants a port name that no pod has",
			service("misnamed", "", "app: web", 80, "no-such-port"), []string{"svc/misnamed"},
			Expect{Exit: 2, Rule: "port-name-mismatch", Subject: "service/shop/misnamed", Also: []string{"api-no-backends"}}),
		objects("local-policy", "Service shop/one-local, externalTrafficPolicy Local, whose only pod is on kpr-w2",
			deployment("one-local", 1, "      nodeName: kpr-w2\n")+"---\n"+
				service("one-local", "  type: NodePort\n  externalTrafficPolicy: Local\n", "app: one-local", 80, "http"),
			[]string{"svc/one-local", "deploy/one-local"}, Expect{Exit: 0, Rule: "local-no-local-backend", Subject: "service/shop/one-local"}).
			// Cilium 1.20.2 keeps the internal row of such a NodePort in the map when
			// the Service is deleted, and its own pruning keeps it as well.
			after(restartAgents),
		objects("affinity", "Service shop/sticky with client affinity of ten seconds",
			service("sticky", "  sessionAffinity: ClientIP\n  sessionAffinityConfig: {clientIP: {timeoutSeconds: 10}}\n", "app: web", 80, "http"),
			[]string{"svc/sticky"}, Expect{}),
		objects("source-ranges", "LoadBalancer shop/ranged that admits one network only, its address set by hand",
			service("ranged", "  type: LoadBalancer\n  loadBalancerSourceRanges: [192.0.2.0/24, \"2001:db8::/32\"]\n  ipFamilyPolicy: PreferDualStack\n", "app: web", 80, "http"),
			[]string{"svc/ranged"}, Expect{}).then(address("ranged", "172.30.0.101")),
		objects("lb-ipam", "LoadBalancer shop/pooled, dual-stack, with addresses from a pool of Cilium's own LB IPAM",
			ipPool+"---\n"+service("pooled", "  type: LoadBalancer\n  ipFamilyPolicy: RequireDualStack\n", "app: web", 80, "http"),
			[]string{"svc/pooled", "ciliumloadbalancerippool/lab-pool"}, Expect{}),
		objects("lb-node-address", "LoadBalancer shop/greedy whose address is kpr-w2's own: since 1.20 no node is cut off by that",
			service("greedy", "  type: LoadBalancer\n", "app: web", 8085, "http"), []string{"svc/greedy"},
			Expect{}).then(address("greedy", "172.30.0.13")),
		objects("host-port", "a pod on kpr-w1 with hostPort 8086, and a LoadBalancer with the node's address and the same port",
			hostPortPod+"---\n"+service("claim", "  type: LoadBalancer\n", "app: web", 8086, "http"), []string{"svc/claim", "pod/porter"},
			Expect{Rule: "frontend-conflict"}).then(address("claim", "172.30.0.12")),
		objects("policy-denied", "a CiliumNetworkPolicy that admits nobody to the pods of shop/web, and a pod that keeps knocking",
			nobodyIn+"---\n"+knocker, []string{"cnp/nobody-in", "pod/knocker"},
			Expect{Exit: 2, Rule: "policy-denied", Subject: "service/shop/web", Flags: []string{"--drops", "10s"}}),
		zoneHints(),
		objects("scaled-to-zero", "Service shop/idle whose Deployment was scaled from one to zero",
			deployment("idle", 1, "")+"---\n"+service("idle", "", "app: idle", 80, "http"),
			[]string{"svc/idle", "deploy/idle"}, Expect{Rule: "api-no-backends", Subject: "service/shop/idle", Exit: 2}).
			then(func(ctx context.Context, l *cluster.Lab) error {
				_, err := l.Kubectl(ctx, "", "-n", "shop", "scale", "deploy/idle", "--replicas=0")
				return err
			}),
		terminating("backend-terminating", "one of two backends of shop/leaving ends slowly and still serves", 1, Expect{}),
		terminating("all-terminating", "every backend of shop/leaving ends slowly; they serve on", 0, Expect{Exit: 0}),
	}
}

const ipPool = `apiVersion: cilium.io/v2
kind: CiliumLoadBalancerIPPool
metadata: {name: lab-pool}
spec:
  blocks: [{cidr: 172.30.0.128/28}, {cidr: "fd00:30::80/124"}]
  serviceSelector: {matchExpressions: [{key: io.kubernetes.service.name, operator: NotIn, values: [web-local]}]}
`

const nobodyIn = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: nobody-in, namespace: shop}
spec:
  endpointSelector: {matchLabels: {app: web}}
  ingress: [{fromEndpoints: [{matchLabels: {app: nobody}}]}]
`

// knocker tries shop/web for as long as it is there.
const knocker = `apiVersion: v1
kind: Pod
metadata: {name: knocker, namespace: shop, labels: {app: knocker}}
spec:
  nodeName: kpr-w1
  terminationGracePeriodSeconds: 0
  containers:
  - name: echo
    image: localhost/echo:lab
    imagePullPolicy: Never
    args: [-n, "1000000", -get, "http://$(WEB_SERVICE_HOST):$(WEB_SERVICE_PORT)/"]
`

const hostPortPod = `apiVersion: v1
kind: Pod
metadata: {name: porter, namespace: shop, labels: {app: porter}}
spec:
  nodeName: kpr-w1
  terminationGracePeriodSeconds: 1
  containers:
  - name: echo
    image: localhost/echo:lab
    imagePullPolicy: Never
    ports: [{name: http, containerPort: 8080, hostPort: 8086}]
`

// objects is a state made of objects that are applied, and deleted again.
func objects(name, doc, yaml string, leave []string, expect Expect) State {
	return State{
		Name: name, Doc: doc, Base: onKPR(), Expect: expect,
		Enter: func(ctx context.Context, l *cluster.Lab) error {
			if err := l.Apply(ctx, yaml); err != nil {
				return err
			}
			for _, o := range leave {
				if strings.HasPrefix(o, "deploy/") {
					if err := l.Rollout(ctx, "shop", o, 3*time.Minute); err != nil {
						return err
					}
				}
			}
			return nil
		},
		Leave: func(ctx context.Context, l *cluster.Lab) error { return l.DeleteNamed(ctx, "shop", leave...) },
	}
}

// then adds a step after a state was entered.
func (s State) then(more func(context.Context, *cluster.Lab) error) State {
	enter := s.Enter
	s.Enter = func(ctx context.Context, l *cluster.Lab) error {
		if err := enter(ctx, l); err != nil {
			return err
		}
		return more(ctx, l)
	}
	return s
}

// after adds a step after a state was left.
func (s State) after(more func(context.Context, *cluster.Lab) error) State {
	leave := s.Leave
	s.Leave = func(ctx context.Context, l *cluster.Lab) error {
		return errors.Join(leave(ctx, l), more(ctx, l))
	}
	return s
}

// address gives a LoadBalancer its address, as a cloud would.
func address(name, ip string) func(context.Context, *cluster.Lab) error {
	return func(ctx context.Context, l *cluster.Lab) error {
		_, err := l.Kubectl(ctx, "", "-n", "shop", "patch", "svc/"+name, "--subresource=status", "--type=merge",
			"-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
		return err
	}
}

func zoneHints() State {
	s := objects("zone-hints", "Service shop/near prefers endpoints of the client's zone; kpr-w1 and kpr-w2 are in zones of their own",
		deployment("near", 4, "      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: near}}}]\n")+
			"---\n"+service("near", "  trafficDistribution: PreferClose\n", "app: near", 80, "http"),
		[]string{"svc/near", "deploy/near"}, Expect{})
	enter, leave := s.Enter, s.Leave
	zone := func(ctx context.Context, l *cluster.Lab, suffix string) error {
		for _, n := range []string{hurt, other} {
			label := "topology.kubernetes.io/zone-"
			if suffix != "" {
				label = "topology.kubernetes.io/zone=" + suffix + n
			}
			if _, err := l.Kubectl(ctx, "", "label", "node", n, label, "--overwrite"); err != nil {
				return err
			}
		}
		return nil
	}
	s.Enter = func(ctx context.Context, l *cluster.Lab) error {
		return errors.Join(zone(ctx, l, "zone-"), enter(ctx, l))
	}
	s.Leave = func(ctx context.Context, l *cluster.Lab) error { return errors.Join(leave(ctx, l), zone(ctx, l, "")) }
	return s
}

// terminating leaves so many pods of two in service, the others ending for
// minutes.
func terminating(name, doc string, left int, expect Expect) State {
	s := objects(name, doc,
		strings.Replace(deployment("leaving", 2, "      terminationGracePeriodSeconds: 900\n"), "        ports:", "        args: [-drain=15m]\n        ports:", 1)+
			"---\n"+service("leaving", "", "app: leaving", 80, "http"),
		[]string{"svc/leaving", "deploy/leaving"}, expect)
	s = s.then(func(ctx context.Context, l *cluster.Lab) error {
		if _, err := l.Kubectl(ctx, "", "-n", "shop", "scale", "deploy/leaving", fmt.Sprintf("--replicas=%d", left)); err != nil {
			return err
		}
		return l.Until(ctx, "pods of shop/leaving ending", time.Minute, func(ctx context.Context) (bool, error) {
			out, err := l.Kubectl(ctx, "", "-n", "shop", "get", "pods", "-l", "app=leaving", "-o", "jsonpath={range .items[*]}{.metadata.deletionTimestamp}{\"\\n\"}{end}")
			return len(strings.Fields(out)) == 2-left, err
		})
	})
	// The Deployment first, or it would replace the pods; they would then take
	// their time to end.
	return s.after(func(ctx context.Context, l *cluster.Lab) error {
		return l.Until(ctx, "pods of shop/leaving gone", time.Minute, func(ctx context.Context) (bool, error) {
			if _, err := l.Kubectl(ctx, "", "-n", "shop", "delete", "rs,pods", "-l", "app=leaving", "--grace-period=0", "--force", "--ignore-not-found"); err != nil {
				return false, err
			}
			out, err := l.Kubectl(ctx, "", "-n", "shop", "get", "pods", "-l", "app=leaving", "-o", "name")
			return strings.TrimSpace(out) == "", err
		})
	})
}
