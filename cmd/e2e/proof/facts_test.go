package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fact is an expected part of the configuration of a proxy, as lines of text: from
// the Plan, and a function that reads the same from the configuration.
type fact struct {
	name string
	want []string
	look func(*envoy.Config) []string
}

// proxy is one whose configuration is compared.
type proxy struct {
	cluster, namespace, pod string
	zone                    string
	labels                  map[string]string
	gateway                 bool
}

func (p proxy) String() string { return p.cluster + "/" + p.namespace + "/" + p.pod }

// facts are all facts of the Plan for a proxy.
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
	out = append(out, sniFacts(plan, p)...)
	out = append(out, answerFacts(plan, p)...)
	return append(out, accessFacts(plan, p)...)
}

// differences compares facts with the configuration of a proxy: a line for each
// difference.
func differences(all []fact, config *envoy.Config) []string {
	var out []string
	for _, f := range all {
		if got := f.look(config); !slices.Equal(got, f.want) {
			out = append(out, fmt.Sprintf("%s:\n  planned\n    %s\n  configured\n    %s", f.name,
				strings.Join(f.want, "\n    "), strings.Join(got, "\n    ")))
		}
	}
	return out
}

// seen is a Destination under one of the names that a proxy's mesh has for it.
type seen struct {
	plan *snapshot.DestinationPlan
	// mesh is the proxy's.
	mesh *snapshot.MeshPlan
	host string
	// view is nil if the mesh has no settings for it.
	view *snapshot.View
	// remote is true for the name of a service of another mesh.
	remote bool
}

// visible lists the Destinations in the configuration of a proxy: those that its
// mesh sees, restricted by ServiceDependencies.
func visible(plan *snapshot.Plan, p proxy) []seen {
	var out []seen
	for d := range plan.Destinations.All() {
		for _, mesh := range append([]*snapshot.MeshPlan{d.Mesh}, federatedTo(d)...) {
			if mesh.Cluster != p.cluster {
				continue
			}
			s := seen{plan: d, mesh: mesh, host: d.LocalFQDN, remote: d.Mesh.Cluster != p.cluster}
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

// clusterName is Istio's name for the endpoints of a host's port.
func clusterName(host string, port uint32, subset string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", port, subset, host)
}
