package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// valueCounts are the values to offer, and how often each occurs.
type valueCounts map[string]int

func (v valueCounts) options(what string) []Option {
	out := make([]Option, 0, len(v))
	for _, value := range slices.Sorted(maps.Keys(v)) {
		out = append(out, Option{Value: value, Text: fmt.Sprintf("%s (%s)", value, snapshot.Count(v[value], what))})
	}
	return out
}

// services are the Destinations that are Services.
func (c *Catalog) services() []*discoveryv1.KubeService {
	var out []*discoveryv1.KubeService
	for d := range c.Plan.Destinations.All() {
		if k := d.Destination.Spec.KubeService; k != nil {
			out = append(out, k)
		}
	}
	return out
}

// mostOfOthers is how many services of other clusters a proxy can be made to hold if some meshes, as namespace/name, see all
// services of each other.
func (c *Catalog) mostOfOthers(meshes []string) int {
	services, most := map[string]int{}, 0
	for _, k := range c.services() {
		services[k.Ref.ClusterName]++
	}
	all, seen := 0, map[string]bool{}
	for _, m := range c.Plan.Meshes {
		if slices.Contains(meshes, m.Ref.Namespace+"/"+m.Ref.Name) && !seen[m.Cluster] {
			seen[m.Cluster] = true
			all += services[m.Cluster]
		}
	}
	for cluster := range seen {
		most = max(most, all-services[cluster])
	}
	return most
}

func serviceName(k *discoveryv1.KubeService) string {
	return k.Ref.Name + "." + k.Ref.Namespace + "." + k.Ref.ClusterName
}

func (c *Catalog) serviceOptions() []Option {
	var out []Option
	for d := range c.Plan.Destinations.All() {
		k := d.Destination.Spec.KubeService
		if k == nil {
			continue
		}
		option := Option{Value: serviceName(k)}
		if hint := serviceHint(d, k); hint != "" {
			option.Text = option.Value + " (" + hint + ")"
		}
		out = append(out, option)
	}
	return out
}

// serviceHint says what concerns a service already: "shifted by reviews-shift; no ready pods".
func serviceHint(d *snapshot.DestinationPlan, k *discoveryv1.KubeService) string {
	var shifted, routed, limited []string
	for _, applied := range d.Traffic {
		if p := applied.Policy; applied.Spec.Policy != nil && applied.Spec.Policy.TrafficShift != nil {
			shifted = append(shifted, p.Name)
		} else {
			routed = append(routed, p.Name)
		}
	}
	for _, rule := range d.Access {
		limited = append(limited, rule.Origin.Ref.Name)
	}
	var parts []string
	for _, list := range []struct {
		does  string
		names []string
	}{{"shifted by ", shifted}, {"configured by ", routed}, {"limited by ", limited}} {
		if names := slices.Compact(list.names); len(names) > 0 {
			parts = append(parts, list.does+joinFirst(names))
		}
	}
	if !slices.ContainsFunc(k.EndpointSubsets, func(s discoveryv1.EndpointSubset) bool { return len(s.Endpoints) > 0 }) {
		parts = append(parts, "no ready pods")
	}
	return strings.Join(parts, "; ")
}

// joinFirst lists the first names, and counts the others.
func joinFirst(names []string) string {
	const first = 2
	if more := len(names) - first; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:first], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (c *Catalog) service(name string) *discoveryv1.KubeService {
	for _, k := range c.services() {
		if serviceName(k) == name {
			return k
		}
	}
	return nil
}

func (c *Catalog) workloads() []*discoveryv1.KubernetesWorkload {
	var out []*discoveryv1.KubernetesWorkload
	for _, o := range c.Plan.Workloads {
		if o.Spec.Kubernetes != nil {
			out = append(out, o.Spec.Kubernetes)
		}
	}
	return out
}

func (c *Catalog) accountOptions() []Option {
	seen := valueCounts{}
	for _, k := range c.workloads() {
		account := k.ServiceAccountName
		if account == "" {
			account = "default"
		}
		seen[account+"."+k.Controller.Namespace+"."+k.Controller.ClusterName]++
	}
	return seen.options("workload")
}

func (c *Catalog) meshOptions() []Option {
	var out []Option
	for _, m := range c.Plan.Meshes {
		text := m.Ref.Namespace + "/" + m.Ref.Name + " (cluster " + m.Cluster
		if m.VirtualMesh != nil {
			text += ", already in " + m.VirtualMesh.Name
		}
		out = append(out, Option{Value: m.Ref.Namespace + "/" + m.Ref.Name, Text: text + ")"})
	}
	return out
}

// matcherValues are namespaces, clusters and labels of services or of workloads.
func (c *Catalog) matcherValues(ofWorkloads bool) (namespaces, clusters, labels valueCounts) {
	namespaces, clusters, labels = valueCounts{}, valueCounts{}, valueCounts{}
	add := func(namespace, cluster string, with map[string]string) {
		namespaces[namespace]++
		clusters[cluster]++
		for k, v := range with {
			labels[joinCommas([]string{k + "=" + v})]++
		}
	}
	if ofWorkloads {
		for _, k := range c.workloads() {
			add(k.Controller.Namespace, k.Controller.ClusterName, k.PodLabels)
		}
		return namespaces, clusters, labels
	}
	for _, k := range c.services() {
		add(k.Ref.Namespace, k.Ref.ClusterName, k.Labels)
	}
	return namespaces, clusters, labels
}

// subsetOptions are the labels by which the pods of services differ.
func subsetOptions(services ...*discoveryv1.KubeService) []Option {
	values := valueCounts{}
	for _, k := range services {
		for key := range k.Subsets {
			for _, value := range k.Subsets[key].Values {
				values[key+"="+value]++
			}
		}
	}
	out := []Option{{Value: "", Text: "all of its pods"}}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Option{Value: value, Text: "pods with " + value})
	}
	return out
}

// portOptions are the ports of a service.
func portOptions(k *discoveryv1.KubeService) []Option {
	var out []Option
	for _, p := range k.Ports {
		out = append(out, Option{Value: fmt.Sprint(p.Port), Text: strings.TrimSpace(fmt.Sprintf("%d %s", p.Port, p.Name))})
	}
	return out
}
