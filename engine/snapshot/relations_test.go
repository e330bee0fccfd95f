package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"
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
	onPort := func(host, subset string) *networking.Destination {
		return &networking.Destination{Host: host, Subset: subset, Port: &networking.PortSelector{Number: 80}}
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
			needs: []string{"cart.global", "cart.global/v1", "cart.shop.svc.cluster-2.global", "cart.shop.svc.cluster.local", "passage to cart.shop.svc.cluster-2.global"},
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
			needs:    []string{passed, passed + "/v1", "passage to " + passed},
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
			spec: &networking.Gateway{Servers: []*networking.Server{{
				Hosts: []string{"cart.shop.svc.cluster-2.global", passed}, Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
			}}},
			provides: []string{"passage to cart.shop.svc.cluster-2.global", "passage to " + passed},
		},
		"route to a port of a service elsewhere": {
			spec: &networking.VirtualService{Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: onPort("cart.shop.svc.cluster-2.global", "v1")}},
			}}},
			needs: []string{"cart.shop.svc.cluster-2.global", "cart.shop.svc.cluster-2.global/v1", "passage to cart.shop.svc.cluster-2.global", "v1.p80.cart.shop.svc.cluster-2.global"},
		},
		"route to a port here": {
			spec: &networking.VirtualService{Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: onPort("cart.shop.svc.cluster.local", "")}},
			}}},
			needs: []string{"cart.shop.svc.cluster.local"},
		},
		"route of gateways": {
			spec: &networking.VirtualService{
				Hosts: []string{"v1.p80.cart.shop.svc.cluster-2.global"}, Gateways: []string{"cart"},
				Tcp: []*networking.TCPRoute{{Route: []*networking.RouteDestination{{Destination: onPort("cart.shop.svc.cluster-2.relayed.global", "v1")}}}},
			},
			needs:    []string{"cart.shop.svc.cluster-2.relayed.global", "cart.shop.svc.cluster-2.relayed.global/v1", "passage to cart.shop.svc.cluster-2.relayed.global"},
			provides: []string{"v1.p80.cart.shop.svc.cluster-2.global"},
		},
		"gateway of one namespace": {
			spec:     &networking.Gateway{Servers: []*networking.Server{{Hosts: []string{"./v1.p80.cart.shop.svc.cluster-2.global"}}}},
			provides: []string{"v1.p80.cart.shop.svc.cluster-2.global"},
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
		"passage to cart.shop.svc.cluster-2.example.com":   "cluster-2",
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

// TestWiden: a Gateway has the servers of both, as long as they can stand side by side.
func TestWiden(t *testing.T) {
	t.Parallel()
	server := func(port, host string) *networking.Server {
		return &networking.Server{Port: &networking.Port{Name: port, Number: 15443}, Hosts: []string{host}}
	}
	passing := func(hosts ...string) *networking.Server {
		return &networking.Server{
			Port: &networking.Port{Name: "tls", Number: 15443}, Hosts: hosts, Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
		}
	}
	gateway := func(servers ...*networking.Server) *networking.Gateway {
		return &networking.Gateway{Servers: servers}
	}
	for name, c := range map[string]struct{ before, after, want proto.Message }{
		"another server": {
			gateway(server("tls-a", "./a"), server("tls-b", "./b")), gateway(server("tls-c", "./c"), server("tls-a", "./a")),
			gateway(server("tls-c", "./c"), server("tls-a", "./a"), server("tls-b", "./b")),
		},
		"the names of ports are unique":     {gateway(server("tls", "./a")), gateway(server("tls", "./b")), gateway(server("tls", "./b"))},
		"hosts are passed on by one server": {gateway(passing("a", "c")), gateway(passing("b", "c")), gateway(passing("a", "b", "c"))},
		"another kind":                      {&networking.DestinationRule{}, gateway(), nil},
		"no kind that can have both":        {&networking.VirtualService{}, &networking.VirtualService{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wide, _ := snapshot.Widen(c.before, c.after).(proto.Message)
			assert.True(t, proto.Equal(c.want, wide), "%v", wide)
		})
	}
}
