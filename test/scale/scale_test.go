package main

import (
	"context"
	"fmt"
	"testing"


	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func TestDebug(t *testing.T) {
	w := world{nodes: 5, services: 40, backends: 3, ingress: 2}
	c, err := start(t, w, faults{}, "recorded", 0)
	if err != nil {
		t.Fatal(err)
	}
	src, err := live.New(live.Options{Config: c.server.Config()})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := src.Nodes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	store := fact.NewStore(nodes)
	facts := []fact.Named{fact.Services, fact.EndpointSlices, fact.Nodes, fact.Pods, fact.Status, fact.Config, fact.Capabilities, fact.LBDigest}
	take := store.Taker(facts...)
	_ = src.Collect(context.Background(), store.Queries(facts...), func(a source.Artifact, err error) {
		if err != nil {
			fmt.Println(a.Query, err)
		}
		take(a, err)
	})
	for n, d := range fact.LBDigest.Each(store.Cluster()) {
		fmt.Println(n, d.Err, d.Value.Agent[:min(8, len(d.Value.Agent))], d.Value.Kernel[:min(8, len(d.Value.Kernel))], len(d.Value.Frontends), len(d.Value.Dump.Rows), d.Value.Unwritten)
	}
	fmt.Println(store.Twins())
	fmt.Println(c.fleet.unkept)
}
