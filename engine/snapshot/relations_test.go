package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRelations: a route to a VirtualDestination follows its host, which follows its
// DestinationRule, which follows what gateways of another cluster pass on.
func TestRelations(t *testing.T) {
	t.Parallel()
	const passed = "cart.gloo-mesh.virtualdestination.global"
	sni := func(subset string) *networking.TrafficPolicy {
		return &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Sni: "outbound_.80_." + subset + "_." + passed}}
	}
	to := func(host, subset string) *networking.Destination {
		return &networking.Destination{Host: host, Subset: subset}
	}
	for name, c := range map[string]struct {
		spec            any
		needs, provides []string
	}{
		"route": {
			spec: &networking.VirtualService{Http: []*networking.HTTPRoute{{
				Route:  []*networking.HTTPRouteDestination{{Destination: to("cart.global", "v1")}, {Destination: to("cart.shop.svc.cluster-2.global", "")}},
				Mirror: to("cart.shop.svc.cluster.local", ""),
			}}},
			needs: []string{"*.svc.cluster-2.global", "*.svc.cluster.local", "cart.global", "cart.global/v1", "cart.shop.svc.cluster-2.global", "cart.shop.svc.cluster.local"},
		},
		"host": {
			spec:     &networking.ServiceEntry{Hosts: []string{"cart.global"}},
			needs:    []string{"connections to cart.global"},
			provides: []string{"cart.global"},
		},
		"host of a service": {
			spec:     &networking.ServiceEntry{Hosts: []string{"cart.shop.svc.cluster-2.global"}},
			provides: []string{"cart.shop.svc.cluster-2.global"},
		},
		"connections through gateways": {
			spec: &networking.DestinationRule{
				Host: "cart.global", TrafficPolicy: sni(""), Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: sni("v1")}},
			},
			needs:    []string{"*.virtualdestination.global", passed, passed + "/v1"},
			provides: []string{"cart.global/v1", "connections to cart.global"},
		},
		"connections to pods": {
			spec:     &networking.DestinationRule{Host: "cart.global", Subsets: []*networking.Subset{{Name: "v1"}}},
			provides: []string{"cart.global/v1"},
		},
		"what gateways pass on": {
			spec:     &networking.DestinationRule{Host: passed, Subsets: []*networking.Subset{{Name: "v1"}}},
			provides: []string{passed + "/v1"},
		},
		"gateway": {
			spec:     &networking.Gateway{Servers: []*networking.Server{{Hosts: []string{"*.svc.cluster-2.global", "*.virtualdestination.global"}}}},
			provides: []string{"*.svc.cluster-2.global", "*.virtualdestination.global"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.needs, snapshot.Needs(c.spec), "needs")
			assert.Equal(t, c.provides, snapshot.Provides(c.spec), "provides")
		})
	}
}

func TestIsIn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"reviews.bookinfo.svc.cluster-2.global":            "cluster-2",
		"reviews.bookinfo.svc.cluster-2.global/version-v3": "cluster-2",
		"*.svc.cluster-2.example.com":                      "cluster-2",
		"reviews.bookinfo.svc.eu.west.global":              "eu.west",
		"reviews.bookinfo.svc.cluster.global":              "cluster",
		"reviews.bookinfo.svc.cluster-22.global":           "",
		"reviews.bookinfo.svc.cluster.local/version-v3":    "",
		"cart.gloo-mesh.virtualdestination.global/v1":      "",
		"svc.cluster-2": "",
	} {
		for _, cluster := range []string{"cluster", "cluster-2", "eu.west", "west"} {
			assert.Equal(t, cluster == want, snapshot.IsIn(name, cluster), "%s in %s", name, cluster)
		}
	}
}
