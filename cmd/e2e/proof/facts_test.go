package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fact is something that a proxy must be told, as lines of text: what the Plan
// says, and how to find the same in the proxy's configuration.
type fact struct {
	name string
	want []string
	look func(*envoy.Config) []string
}

// proxy is who is told.
type proxy struct {
	cluster, namespace, pod string
	zone                    string
	labels                  map[string]string
	gateway                 bool
}

func (p proxy) String() string { return p.cluster + "/" + p.namespace + "/" + p.pod }

// facts are all that the Plan means for a proxy.
func facts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	if p.gateway {
		return append(append(out, gatewayFacts(plan, p)...), openFacts(plan, p)...)
	}
	out = append(out, knowledgeFacts(plan, p)...)
	out = append(out, externalFacts(plan, p)...)
	out = append(out, virtualFacts(plan, p)...)
	out = append(out, filterFacts(plan, p)...)
	out = append(out, routeFacts(plan, p)...)
	out = append(out, connectionFacts(plan, p)...)
	out = append(out, endpointFacts(plan, p)...)
	out = append(out, knockFacts(plan, p)...)
	return append(out, accessFacts(plan, p)...)
}

// differences compares facts with what a proxy is told: one sentence each.
func differences(all []fact, told *envoy.Config) []string {
	var out []string
	for _, f := range all {
		if got := f.look(told); !slices.Equal(got, f.want) {
			out = append(out, fmt.Sprintf("%s:\n  planned\n    %s\n  told\n    %s", f.name,
				strings.Join(f.want, "\n    "), strings.Join(got, "\n    ")))
		}
	}
	return out
}

// seen is a Destination under one of the names that a proxy's mesh has for it.
type seen struct {
	plan *snapshot.DestinationPlan
	host string
	// view is nil where the mesh sees nothing special.
	view *snapshot.View
	// remote is true for the name that a service of another mesh has.
	remote bool
}

// visible lists what a proxy is told of: what its mesh sees, and of that what it
// depends on, if somebody said so.
func visible(plan *snapshot.Plan, p proxy) []seen {
	var out []seen
	for d := range plan.Destinations.All() {
		for _, mesh := range append([]*snapshot.MeshPlan{d.Mesh}, federatedTo(d)...) {
			if mesh.Cluster != p.cluster {
				continue
			}
			s := seen{plan: d, host: d.LocalFQDN, remote: d.Mesh.Cluster != p.cluster}
			if s.remote {
				s.host = d.Federation.Hostname
			}
			for _, v := range d.Views {
				if v.Mesh == mesh {
					s.view = v
				}
			}
			if knows(sidecarOf(plan, p), s.host) {
				out = append(out, s)
			}
		}
	}
	return out
}

func federatedTo(d *snapshot.DestinationPlan) []*snapshot.MeshPlan {
	if d.Federation == nil {
		return nil
	}
	return d.Federation.To
}

// clusterName is what Istio calls the endpoints of a host's port.
func clusterName(host string, port uint32, subset string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", port, subset, host)
}
