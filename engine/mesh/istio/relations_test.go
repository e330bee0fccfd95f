package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

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
	asking := func(sni string) *networking.TrafficPolicy {
		return &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL, Sni: sni}}
	}
	for name, c := range map[string]struct{ before, after, want proto.Message }{
		"subsets": {
			&networking.DestinationRule{Host: "a", Subsets: []*networking.Subset{{Name: "v1"}, {Name: "v2"}}},
			&networking.DestinationRule{Host: "a", Subsets: []*networking.Subset{{Name: "v2"}, {Name: "v3"}}},
			&networking.DestinationRule{Host: "a", Subsets: []*networking.Subset{{Name: "v2"}, {Name: "v3"}, {Name: "v1"}}},
		},
		"gateways are asked": {
			&networking.DestinationRule{Host: "a", TrafficPolicy: asking("a.b.virtualdestination.c"), Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: asking("a.b.virtualdestination.c")}, {Name: "v2"}}},
			&networking.DestinationRule{Host: "a", Subsets: []*networking.Subset{{Name: "v1"}, {Name: "v3"}}},
			&networking.DestinationRule{Host: "a", TrafficPolicy: asking("a.b.virtualdestination.c"), Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: asking("a.b.virtualdestination.c")}, {Name: "v2"}, {Name: "v3"}}},
		},
		"another SNI": {
			&networking.DestinationRule{Host: "a", TrafficPolicy: asking("a.example.com"), Subsets: []*networking.Subset{{Name: "v1"}}},
			&networking.DestinationRule{Host: "a"},
			&networking.DestinationRule{Host: "a", Subsets: []*networking.Subset{{Name: "v1"}}},
		},
		"another host": {&networking.DestinationRule{Host: "a"}, &networking.DestinationRule{Host: "b"}, nil},
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
			wide, _ := (Renderer{}).Widen(snapshot.NoKind, c.before, c.after).(proto.Message)
			assert.True(t, proto.Equal(c.want, wide), "%v", wide)
		})
	}
}
