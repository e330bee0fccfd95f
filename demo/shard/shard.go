// Package shard divides the tests: most run for every change, the others belong to a shard. Some are left out by the race detector.
package shard

import (
	"os"
	"slices"
	"testing"
)

// Name is that of a part of the tests that takes too long to run it for every change. `make test` leaves all shards
// out; `make test-shard SHARD=wire` runs one of them, and `make test-all` everything.
type Name string

// The shards, each with what only it proves.
const (
	// Wire sends requests through real proxies for each field of the policies.
	Wire Name = "wire"
	// WireTraffic compares what proxies count with what was sent through them.
	WireTraffic Name = "wire-traffic"
	// WireTrust exchanges pods, certificates and roots below real proxies.
	WireTrust Name = "wire-trust"
	// Clusters uses whole clusters without proxies: trust, upgrade, uninstall, the wizards.
	Clusters Name = "clusters"
	// Serve makes faults around the management plane in whole clusters, with the race detector.
	Serve Name = "serve"
	// Proof compares the configuration of Istio's proxies with the Plan.
	Proof Name = "proof"
	// OSM is everything with Open Service Mesh, whose control plane only this shard builds.
	OSM Name = "osm"
	// Demo starts and breaks the demo and its clusters.
	Demo Name = "demo"
	// Soak edits and makes faults at random.
	Soak Name = "soak"
	// Fuzz fuzzes what parses; it has no tests.
	Fuzz Name = "fuzz"
	// Kind runs everything in the pods of kind clusters, which needs a container engine.
	Kind Name = "kind"
)

// All are the shards, in the order in which they are numbered.
func All() []Name {
	return []Name{Wire, WireTraffic, WireTrust, Clusters, Serve, Proof, OSM, Demo, Soak, Fuzz, Kind}
}

// Variable is the environment variable with the shard that is run; it is unset for the tests that are in
// none.
const Variable = "MESHCTL_TEST_SHARD"

// Only skips a test of a shard unless it is run. It must be the first statement of the test: demo/testrun
// finds the tests of a shard by it.
func Only(t testing.TB, name Name) {
	t.Helper()
	if !slices.Contains(All(), name) {
		t.Fatalf("there is no shard %s", name)
	}
	if os.Getenv(Variable) != string(name) {
		t.Skipf("run by make test-shard SHARD=%s", name)
	}
}

// Unraced skips a test under the race detector, which makes it ten times slower and finds nothing new in it: it shares nothing between
// goroutines, or another test does the same under the detector.
// It must be the first statement of the test: demo/testrun finds by it what to run without the detector in packages that are tested with it.
func Unraced(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("run without the race detector")
	}
}
