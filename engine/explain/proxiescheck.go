package explain

import (
	"fmt"
	"slices"
	"strings"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// drawsPerPair bounds how many pairs are drawn for one that can be asked about.
const drawsPerPair = 50

// CheckedProxies are answers about a sample of callers and called services, each with what the proxies hold.
type CheckedProxies struct {
	// Wanted is how many were asked for, and Seed that of the sample.
	Wanted  int
	Seed    uint64
	Answers []*Why
	// NotAsked are the clusters whose proxies could not be read from here, by name. Pairs of which one is there are not evaluated.
	NotAsked []NotAsked
}

// NotAsked is a cluster whose proxies could not be read.
type NotAsked struct {
	Cluster string
	// Relayed: it is reached through its agent.
	Relayed bool
	// Reason is a sentence, with what to do.
	Reason string
}

// via is how the cluster is reached, as in the list of clusters.
func (n *NotAsked) via() string {
	if n.Relayed {
		return strings.ToLower(string(multiclusterv1alpha1.ViaRelay))
	}
	return strings.ToLower(string(multiclusterv1alpha1.ViaDirect))
}

// AdminPortOf is where the proxy of a workload has its admin interface; 0 if its mesh has none.
func AdminPortOf(x *Index, workload snapshot.Ref) uint32 {
	w := x.workloads[workload]
	if w == nil {
		return 0
	}
	if m := x.meshOf(w); m != nil && m.Dialect.Proxies != nil {
		return m.Dialect.Proxies.AdminPort
	}
	return 0
}

// SampleProxies asks what becomes of requests for / of some callers to services that they know, and what their proxies hold about it.
// Random returns a number below its argument; ended stops it early.
func SampleProxies(x *Index, count int, random func(below int) int, proxies Proxies, ended func() bool) []*Why {
	var callers []snapshot.Ref
	for _, ref := range sortedRefs(x.workloads) {
		w := x.workloads[ref]
		k := w.Spec.Kubernetes
		if m := x.meshOf(w); k != nil && m != nil && m.Dialect.Proxies != nil && modeOf(w) == "" && !isGateway(w) && !ofGateway(m, k.Controller.Namespace, k.PodLabels) {
			callers = append(callers, ref)
		}
	}
	var called []snapshot.Ref
	for _, ref := range sortedRefs(x.destinations) {
		d := x.destinations[ref]
		if k := d.Destination.Spec.KubeService; k != nil && d.Mesh != nil && !ofGateway(d.Mesh, k.Ref.Namespace, k.WorkloadSelectorLabels) {
			called = append(called, ref)
		}
	}
	if len(callers) == 0 || len(called) == 0 {
		return nil
	}
	out, drawn := []*Why{}, map[[2]snapshot.Ref]bool{}
	for draws := 0; len(out) < count && draws < count*drawsPerPair && !ended(); draws++ {
		pair := [2]snapshot.Ref{callers[random(len(callers))], called[random(len(called))]}
		if drawn[pair] {
			continue
		}
		drawn[pair] = true
		why := x.Why(pair[0], pair[1], Request{})
		if why == nil || why.Host == "" {
			continue
		}
		AddProxies(x, why, proxies)
		out = append(out, why)
	}
	return out
}

// ofGateway reports whether pods of a namespace are of one of the gateways of a mesh.
func ofGateway(m *snapshot.MeshPlan, namespace string, pods map[string]string) bool {
	for i := range m.Gateways {
		if g := &m.Gateways[i]; g.Service.Namespace == namespace && hasLabels(pods, g.Selector) {
			return true
		}
	}
	return slices.ContainsFunc(m.OpenGateways, func(g snapshot.OpenGateway) bool {
		return g.Service.Namespace == namespace && hasLabels(pods, g.Selector)
	})
}

// isSaid reports whether a reason of an answer is that of a cluster that was not asked.
func (c *CheckedProxies) isSaid(reason string) bool {
	return slices.ContainsFunc(c.NotAsked, func(n NotAsked) bool { return n.Reason == reason })
}

// proxies are the checks of what proxies hold: a failure for each pair where it differs, and a warning for what is not known.
func (k *checks) proxies() CheckCategory {
	category := CheckCategory{Title: "Proxies"}
	if k.Proxies == nil {
		return category
	}
	const same = "the proxies hold what follows from the objects"
	sample := fmt.Sprintf("seed %d", k.Proxies.Seed)
	agree, unknown, listed := 0, map[string]int{}, 0
	var reasons []string
	for _, why := range k.Proxies.Answers {
		p := why.Proxies
		switch {
		case !p.Agrees:
			if listed++; listed > maxListed {
				continue
			}
			d := &p.Differences[0]
			message := d.What + " differs: " + d.Proxies + " in the proxies, and " + d.Objects + " by the objects"
			if by := refsText(d.By) + prefixed("perhaps ", firstOf(d.Perhaps)); by != "" {
				message += " (" + by + ")"
			}
			ref := why.From
			category.add(Check{
				ID: "proxies/" + why.From.Name + "/" + why.To.Name, Description: why.From.Name + " to " + why.To.Name, Result: CheckFailure, Message: message,
				Hint: fmt.Sprintf("see all of it with: meshctl why %s %s --proxy", why.From.Name, why.To.Name), On: &ref,
			})
		case p.Verdict == Unknown:
			if unknown[p.Reason]++; unknown[p.Reason] == 1 {
				reasons = append(reasons, p.Reason)
			}
		default:
			agree++
		}
	}
	if more := listed - maxListed; more > 0 {
		category.fail("proxies/more", "others", snapshot.Count(more, "more pair")+" of callers and services of which the proxies differ", "repeat it after the ones above are resolved")
	}
	for i := range k.Proxies.NotAsked {
		n := &k.Proxies.NotAsked[i]
		what := fmt.Sprintf("proxies of %s (via %s) not asked, and %s not evaluated", n.Cluster, n.via(), snapshot.Count(unknown[n.Reason], "pair"))
		category.warn("proxies/not-asked/"+n.Cluster, what, n.Reason, "see who decides there by the objects: meshctl why FROM TO")
	}
	reasons = slices.DeleteFunc(reasons, k.Proxies.isSaid)
	for i, reason := range reasons {
		if i == maxListed {
			break
		}
		category.warn(fmt.Sprintf("proxies/unknown/%d", i+1), fmt.Sprintf("%s not evaluated", snapshot.Count(unknown[reason], "pair")), strings.TrimSuffix(reason, "."), "see all of it with: meshctl why FROM TO --proxy")
	}
	switch {
	case len(k.Proxies.Answers) == 0:
		category.warn("proxies", same, "there is no caller with a proxy and a service for requests that it knows", "")
	case agree > 0:
		category.ok("proxies", same, fmt.Sprintf("%d of %s of callers and services, %s", agree, snapshot.Count(len(k.Proxies.Answers), "pair"), sample))
	default:
		category.warn("proxies", same, fmt.Sprintf("for none of %s of callers and services, %s", snapshot.Count(len(k.Proxies.Answers), "pair"), sample), "see what differs, or could not be evaluated, above")
	}
	return category
}
