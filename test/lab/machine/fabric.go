package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// MakeFabric makes one network namespace a node and joins them by a bridge in
// a namespace of its own. None of it has a way out of the machine.
func MakeFabric(ctx context.Context, l *Ledger) error {
	names := []string{place.Fabric}
	for _, n := range place.Nodes() {
		names = append(names, n.Name)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("/run/netns", name)); err == nil {
			return fmt.Errorf("network namespace %s: already there and not the lab's", name)
		}
	}
	// The first namespace that ip names on a machine makes /run/netns a mount.
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	if !slices.Contains(mounts, "/run/netns") {
		if err := l.Add(Entry{Kind: Mount, Name: "/run/netns"}); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := l.Add(Entry{Kind: Netns, Name: name}); err != nil {
			return err
		}
		if err := ip(ctx, "netns", "add", name); err != nil {
			return err
		}
	}
	err = errors.Join(
		ip(ctx, "-n", place.Fabric, "link", "set", "lo", "up"),
		ip(ctx, "-n", place.Fabric, "link", "add", "br0", "type", "bridge"),
		ip(ctx, "-n", place.Fabric, "addr", "add", place.Gateway4+"/24", "dev", "br0"),
		ip(ctx, "-n", place.Fabric, "addr", "add", place.Gateway6+"/64", "dev", "br0", "nodad"),
		ip(ctx, "-n", place.Fabric, "link", "set", "br0", "up"),
	)
	for _, n := range place.Nodes() {
		err = errors.Join(err, plug(ctx, n))
	}
	return err
}

// plug gives a node its interface, addresses and default routes.
func plug(ctx context.Context, n place.Node) error {
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "eth0", "type", "veth", "peer", "name", n.Name, "netns", place.Fabric},
		{"addr", "add", n.IP4 + "/24", "dev", "eth0"},
		{"addr", "add", n.IP6 + "/64", "dev", "eth0", "nodad"},
		{"link", "set", "eth0", "up"},
		{"route", "add", "default", "via", place.Gateway4},
		{"-6", "route", "add", "default", "via", place.Gateway6},
	} {
		if err := ip(ctx, append([]string{"-n", n.Name}, args...)...); err != nil {
			return err
		}
	}
	if err := ip(ctx, "-n", place.Fabric, "link", "set", n.Name, "master", "br0", "up"); err != nil {
		return err
	}
	_, err := Run(ctx, "ip", "netns", "exec", n.Name, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	return err
}

func ip(ctx context.Context, args ...string) error {
	_, err := Run(ctx, append([]string{"ip"}, args...)...)
	return err
}
