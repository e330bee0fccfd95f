package discovery_test

import (
	"fmt"
	"testing"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func BenchmarkDiscover(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		c := manyServices(n)
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := discovery.Discover(c, options()); len(got.Destinations) != n {
					b.Fatalf("%d destinations", len(got.Destinations))
				}
			}
		})
	}
}

// BenchmarkDiscoverOneNamespace shows that selection stays linear when all
// services and workloads share a namespace and a label.
func BenchmarkDiscoverOneNamespace(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		c := manyServices(n)
		for _, s := range c.Services {
			s.Namespace, s.Spec.Selector = "all", map[string]string{"app": s.Name, "team": "all"}
		}
		for _, d := range c.Deployments[1:] {
			d.Namespace = "all"
		}
		for _, o := range c.ReplicaSets {
			o.Namespace = "all"
		}
		for _, o := range c.Pods {
			o.Namespace = "all"
		}
		for _, o := range c.EndpointSlices {
			o.Namespace = "all"
		}
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := discovery.Discover(c, options()); len(got.Destinations) != n {
					b.Fatalf("%d destinations", len(got.Destinations))
				}
			}
		})
	}
}

// BenchmarkReuse compares two results of the same objects, as after an event
// that changed nothing, and of equal ones, as after reading all anew.
func BenchmarkReuse(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		c := manyServices(n)
		older := discovery.Discover(c, options())
		for name, newer := range map[string]*snapshot.Discovered{
			"same":  discovery.Discover(c, options()),
			"equal": discovery.Discover(manyServices(n), options()),
		} {
			b.Run(fmt.Sprintf("services=%d/objects=%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				var got *snapshot.Discovered
				for b.Loop() {
					got = discovery.Reuse(older, newer)
				}
				if got != older {
					b.Fatal("equal results were not recognised")
				}
			})
		}
	}
}
