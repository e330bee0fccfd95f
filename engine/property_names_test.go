package engine_test

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// storeVirtual writes the statuses of VirtualDestinations back, as a sink would.
func (w *randomWorld) storeVirtual(state *snapshot.State) {
	statuses := map[string]*enterprisev1beta1.VirtualDestinationStatus{}
	for s := range state.Output.Statuses.All() {
		if v, ok := s.Value.(*enterprisev1beta1.VirtualDestinationStatus); ok {
			statuses[s.Ref.Name] = v
		}
	}
	w.virtual = copies(w.virtual, func(v *enterprisev1beta1.VirtualDestination) *enterprisev1beta1.VirtualDestination {
		v = v.DeepCopy()
		v.Status = *statuses[v.Name].DeepCopy()
		return v
	})
}

// storeOther has an object stored with a name or an address that another one may have,
// or that nobody can have.
func (w *randomWorld) storeOther() {
	if w.r.Intn(3) == 0 {
		w.changeStored(func(d *discoveryv1.Destination) {
			if w.r.Intn(2) == 0 {
				d.Name += "-0123456789ab"
			} else {
				d.Spec.KubeService.Ref.Name = enginetest.Service(w.r.Intn(randomServices))
			}
		})
		sortByName(w.stored)
		return
	}
	var some []string
	for _, d := range w.stored {
		if f := d.Status.AppliedFederation; f != nil {
			some = append(some, f.Address)
		}
	}
	for _, v := range w.virtual {
		some = append(some, v.Status.Address)
	}
	some = append(some, "250.0.0.1", "250.0.0.2", "10.0.0.1", "garbage", "")
	address := some[w.r.Intn(len(some))]
	if len(w.virtual) > 0 && w.r.Intn(2) == 0 {
		w.virtual = slices.Clone(w.virtual)
		at := w.r.Intn(len(w.virtual))
		w.virtual[at] = w.virtual[at].DeepCopy()
		w.virtual[at].Status.Address = address
		return
	}
	w.changeStored(func(d *discoveryv1.Destination) {
		if d.Status.AppliedFederation != nil {
			d.Status.AppliedFederation.Address = address
		}
	})
}

// changeStored changes a stored Destination.
func (w *randomWorld) changeStored(change func(*discoveryv1.Destination)) {
	if len(w.stored) == 0 {
		return
	}
	w.stored = slices.Clone(w.stored)
	at := w.r.Intn(len(w.stored))
	w.stored[at] = w.stored[at].DeepCopy()
	change(w.stored[at])
}

// contested are what names of objects join to: a name, a namespace and a cluster of
// contestedClusters, of which one ends in the other.
var (
	contested         = []string{"a-b-a-b-b-c", "b-b-b-c"}
	contestedClusters = []string{"b-c", "c"}
)

// contestedWorld changes some of the clusters of a world in which few names have many
// sources.
func contestedWorld(r *rand.Rand, before []*snapshot.Cluster) []*snapshot.Cluster {
	var out []*snapshot.Cluster
	for n, name := range contestedClusters {
		at := slices.IndexFunc(before, func(c *snapshot.Cluster) bool { return c.Name == name })
		switch {
		case at >= 0 && r.Intn(2) == 0:
			out = append(out, before[at])
		case r.Intn(4) > 0:
			istiod := places("istiod-m-b-b-c", name)
			var services []enginetest.Place
			for _, joined := range contested {
				for _, p := range places(joined, name) {
					if r.Intn(2) == 0 {
						services = append(services, p)
					}
				}
			}
			out = append(out, enginetest.NamedCluster(n, name, istiod[min(1, r.Intn(8))], services...))
		}
	}
	return out
}

// places are the names and namespaces that, in a cluster, join to a name.
func places(joined, cluster string) []enginetest.Place {
	rest := strings.TrimSuffix(joined, "-"+cluster)
	var out []enginetest.Place
	for i, letter := range rest {
		if letter == '-' {
			out = append(out, enginetest.Place{Namespace: rest[i+1:], Name: rest[:i]})
		}
	}
	return out
}

// held are the names and addresses of objects, by what they are made of.
type held struct{ names, addresses map[snapshot.Ref]string }

// heldBy are those of discovered objects and VirtualDestinations.
func heldBy(m *snapshot.Management) held {
	out := held{map[snapshot.Ref]string{}, map[snapshot.Ref]string{}}
	for _, o := range m.Meshes {
		at := o.Spec.Istio.Installation
		out.names[snapshot.Ref{Kind: snapshot.Mesh, Cluster: at.Cluster, Namespace: at.Namespace}] = o.Name
	}
	for _, o := range m.Workloads {
		c := o.Spec.Kubernetes.Controller
		out.names[snapshot.Ref{Kind: snapshot.Workload, Cluster: c.ClusterName, Namespace: c.Namespace, Name: c.Name}] = o.Name
	}
	for _, o := range m.Destinations {
		out.names[service(o)] = o.Name
		if f := o.Status.AppliedFederation; f != nil {
			out.addresses[service(o)] = f.Address
		}
	}
	for _, v := range m.VirtualDestinations {
		out.addresses[snapshot.RefOf(snapshot.VirtualDestination, v)] = v.Status.Address
	}
	return out
}

func service(d *discoveryv1.Destination) snapshot.Ref {
	s := d.Spec.KubeService.Ref
	return snapshot.Ref{Kind: snapshot.Destination, Cluster: s.ClusterName, Namespace: s.Namespace, Name: s.Name}
}

// collected is the Input with what was written, and without what was collected.
func collected(in *snapshot.Input, state *snapshot.State) *snapshot.Input {
	next := echo(in, state.Output)
	next.Management.Destinations = slices.DeleteFunc(next.Management.Destinations, func(d *discoveryv1.Destination) bool {
		return !slices.ContainsFunc(state.Plan.Destinations.Slice(), func(p *snapshot.DestinationPlan) bool { return p.Ref.Name == d.Name })
	})
	return next
}

// giveAway has an object stored with an address that a new service prefers, as if it
// had made way for another one once.
func giveAway(t *testing.T, r *rand.Rand, in *snapshot.Input) {
	t.Helper()
	stored := heldBy(in.Management)
	fresh := heldBy(collected(in, engine.Translate(in)).Management)
	for _, ref := range slices.SortedFunc(maps.Keys(fresh.addresses), snapshot.Ref.Compare) {
		address := fresh.addresses[ref]
		if stored.addresses[ref] != "" || slices.Contains(slices.Collect(maps.Values(stored.addresses)), address) {
			continue
		}
		if v := in.Management.VirtualDestinations[0]; r.Intn(2) == 0 && v.Status.Address != "" {
			v.Status.Address = address
			return
		}
		for _, d := range in.Management.Destinations {
			if f := d.Status.AppliedFederation; f != nil {
				moved := *f
				moved.Address = address
				d.Status.AppliedFederation = &moved
				return
			}
		}
	}
}

// contestedInput is what stands at the beginning.
func contestedInput(r *rand.Rand) *snapshot.Input {
	m := &snapshot.Management{Namespace: snapshot.DefaultNamespace}
	vm := &networkingv1.VirtualMesh{}
	vm.Name, vm.Namespace = "all", snapshot.DefaultNamespace
	vm.Spec.Federation = &networkingv1.Federation{Permissive: &networkingv1.PermissiveFederation{}}
	m.VirtualMeshes = []*networkingv1.VirtualMesh{vm}
	v := &enterprisev1beta1.VirtualDestination{}
	v.Name, v.Namespace = "virtual", snapshot.DefaultNamespace
	v.Spec = enterprisev1beta1.VirtualDestinationSpec{
		Hostname: "a.global", Port: &enterprisev1beta1.VirtualDestinationPort{Number: 8080},
		VirtualMesh: &commonv1.ObjectRef{Name: vm.Name, Namespace: vm.Namespace},
		Static:      &enterprisev1beta1.StaticDestinations{},
	}
	m.VirtualDestinations = []*enterprisev1beta1.VirtualDestination{v}
	return &snapshot.Input{Clusters: contestedWorld(r, nil), Management: m}
}

// TestNothingMovesToAnother: whatever clusters, control planes and services come and
// go, none takes the name or the address of one that is stored.
func TestNothingMovesToAnother(t *testing.T) {
	t.Parallel()
	var names, addresses, issues int
	for seed := range seeds(t, rounds) {
		r := rand.New(rand.NewSource(seed))
		in := contestedInput(r)
		translator := engine.New(engine.Options{})
		for step := range 10 {
			state := translator.Translate(in)
			require.Equal(t, text(t, engine.Translate(in).Output), text(t, state.Output), "seed %d, step %d", seed, step)
			next := collected(in, state)
			before, after := heldBy(in.Management), heldBy(next.Management)
			names += sameHeld(t, before.names, after.names)
			maps.DeleteFunc(before.addresses, func(ref snapshot.Ref, _ string) bool { return after.addresses[ref] == "" }) // that of one that is gone is free
			addresses += sameHeld(t, before.addresses, after.addresses)
			issues += len(state.Output.Issues)

			in = next
			in.Clusters = contestedWorld(r, in.Clusters)
			members := &in.Management.VirtualMeshes[0].Spec.Meshes
			*members = nil
			for _, m := range in.Management.Meshes {
				*members = append(*members, commonv1.ObjectRef{Name: m.Name, Namespace: m.Namespace})
			}
			giveAway(t, r, in)
		}
	}
	t.Log(names, "names and", addresses, "addresses stayed;", issues, "issues")
	require.Positive(t, names)
	require.Positive(t, addresses)
	require.Positive(t, issues)
}

// sameHeld checks that what is stored has what it had, if it is still there, and that
// nothing else has it. It counts what is still there.
func sameHeld(t *testing.T, before, after map[snapshot.Ref]string) (kept int) {
	t.Helper()
	for ref, had := range before {
		if has := after[ref]; has != "" && had != "" {
			require.Equal(t, had, has, "%s", ref)
			kept++
		}
	}
	for ref, has := range after {
		for other, had := range before {
			require.False(t, ref.Kind == other.Kind && ref != other && has != "" && has == had, "%s has %s of %s", ref, has, other)
		}
	}
	return kept
}

// home is a namespace for a policy: now and then one that the Settings may name.
func (w *randomWorld) home() string {
	if w.r.Intn(5) == 0 {
		return "team"
	}
	return snapshot.DefaultNamespace
}
