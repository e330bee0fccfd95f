package apply_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ferryDetector finds a made-up mesh: its control planes are Deployments with a
// label, and its proxies containers with a name.
func ferryDetector() discovery.Detector {
	return discovery.Detector{
		Name: "Ferry",
		ControlPlanes: func(x *discovery.Index) []*discovery.ControlPlane {
			var out []*discovery.ControlPlane
			for _, d := range x.Deployments {
				if d.Labels["app"] == "ferry-control" {
					mesh := x.NewMesh(d)
					version := x.Version(d.Spec.Template.Spec.Containers[0].Image, d, snapshot.RefOf(snapshot.Mesh, mesh))
					mesh.Spec.Linkerd = &discoveryv1.LinkerdMesh{Installation: x.Installation(d, version), ClusterDomain: "ferry.example"}
					out = append(out, &discovery.ControlPlane{Mesh: mesh})
				}
			}
			return out
		},
		Sidecar: func(_ *discovery.Index, pod *corev1.Pod) (discovery.Claim, bool) {
			return discovery.Claim{}, slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "ferry-proxy" })
		},
		RevisionName: "revision", Fix: "restart it",
	}
}

var ferryDialect = &snapshot.Dialect{
	Type: "linkerd", Name: "Ferry", SPIFFE: true,
	Fields: slices.Concat(
		snapshot.Declare(snapshot.TrafficPolicy, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.AccessPolicy, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.VirtualMesh, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.VirtualDestination, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.ServiceDependency, snapshot.Enforced, "", ""),
		snapshot.Declare(snapshot.Settings, snapshot.Enforced, "", ""),
	),
	Describe: func(plan *snapshot.MeshPlan) {
		plan.TrustDomain, plan.ResolvesAll = plan.Mesh.Spec.Linkerd.ClusterDomain, true
	},
}

// ferryRenderer makes one object of every plan, of a kind that the API server knows.
type ferryRenderer struct{}

var _ render.Renderer = ferryRenderer{}

func (ferryRenderer) Dialect() *snapshot.Dialect { return ferryDialect }

func ferryObject(kind snapshot.Kind, mesh *snapshot.MeshPlan, name, namespace, says string, parents ...snapshot.Ref) []*snapshot.Object {
	return []*snapshot.Object{{
		Ref:     snapshot.Ref{Kind: kind, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: name},
		Content: render.NewContent(namespace, hosts(says), parents, parents),
	}}
}

func (ferryRenderer) Destination(p *snapshot.DestinationPlan, namespace string) []*snapshot.Object {
	var says []string
	for _, a := range p.Traffic {
		says = append(says, "traffic "+a.Policy.Name)
	}
	for _, a := range p.Access {
		for _, s := range a.Sources {
			for _, id := range s.Identities {
				says = append(says, "from "+id.TrustDomain+"/"+id.ServiceAccount)
			}
		}
	}
	return ferryObject(snapshot.DestinationRule, p.Mesh, p.Destination.Spec.KubeService.Ref.Name, namespace, strings.Join(says, ", "))
}

func (ferryRenderer) Mesh(p *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	if p.DenyByDefault == nil {
		return nil
	}
	return ferryObject(snapshot.AuthorizationPolicy, p, "deny", namespace, "by "+p.DenyByDefault.Ref.Name)
}

func (ferryRenderer) Widen(snapshot.Kind, any, any) any { return nil }

func (ferryRenderer) Passage(p *snapshot.PassagePlan, namespace string) []*snapshot.Object {
	return ferryObject(snapshot.Gateway, p.Mesh, p.Gateway.Service.Name, namespace, strings.Join(p.Hosts, ", "))
}

func (ferryRenderer) Filters(p *snapshot.FilterPlan, namespace string) []*snapshot.Object {
	return ferryObject(snapshot.EnvoyFilter, p.Mesh, "filters", namespace, "for "+p.Policies[0].Name, p.Policies...)
}

func (ferryRenderer) Sidecar(p *snapshot.SidecarPlan, namespace string) []*snapshot.Object {
	var names []string
	for _, h := range p.Egress.Hosts {
		if len(h.Origins) > 0 { // else every proxy needs it
			names = append(names, h.Host)
		}
	}
	return ferryObject(snapshot.Sidecar, p.Mesh, p.Ref.Name, namespace, strings.Join(names, ", "))
}

func (ferryRenderer) External(p *snapshot.ExternalPlan, namespace string) []*snapshot.Object {
	var out []*snapshot.Object
	for _, mesh := range p.Meshes {
		if mesh.Dialect == ferryDialect {
			out = append(out, ferryObject(snapshot.ServiceEntry, mesh, p.Ref.Name, namespace, p.Destination.Spec.ExternalService.Hosts[0])...)
		}
	}
	return out
}

func (ferryRenderer) VirtualDestination(p *snapshot.VirtualDestinationPlan, namespace string) []*snapshot.Object {
	var out []*snapshot.Object
	for _, view := range p.Views {
		if view.Mesh.Dialect == ferryDialect && len(view.Priorities) > 0 {
			out = append(out, ferryObject(snapshot.VirtualService, view.Mesh, p.Ref.Name, namespace, p.Hostname, p.Ref)...)
		}
	}
	return out
}

// TestThirdMesh brings a mesh that nothing else knows from a cluster's objects to
// an API server, beside an Istio: all that it needs is a detector and a renderer.
func TestThirdMesh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(snapshot.Sidecar, snapshot.EnvoyFilter)
	folder := fstest.MapFS{}
	for _, name := range []string{"cluster-1/cluster.yaml", "management/policies.yaml"} {
		data, err := os.ReadFile("testdata/thirdmesh/" + name)
		require.NoError(t, err)
		folder[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "NAMESPACE", w.namespace))}
	}
	in, unused, err := offline.Load(folder)
	require.NoError(t, err)
	require.Empty(t, unused)

	translator := engine.New(engine.Options{Meshes: append(engine.Meshes(), engine.Mesh{Detector: ferryDetector(), Renderer: ferryRenderer{}})})
	state := translator.Translate(in)
	var found []string
	for _, m := range state.Plan.Meshes {
		found = append(found, m.Dialect.Name+" "+m.Ref.Name)
	}
	assert.Equal(t, []string{"Ferry ferry-control-" + w.namespace + "-cluster-1", "Istio istiod-istio-system-cluster-1"}, found)

	for _, document := range strings.Split(string(folder["management/policies.yaml"].Data), "\n---\n") {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
		kind, ok := snapshot.KindOf(o.GroupVersionKind().GroupKind())
		if !ok {
			continue // about the folder
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
		_, err := w.of(kind).Create(t.Context(), &o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	sink, _ := w.run()
	sink.Set("", w.config)
	sink.Set(one, w.config)
	sink.apply(state.Output)
	assert.Empty(t, sink.Failures())

	want := map[snapshot.Kind]map[string]string{
		// Identities are those of all trust domains of the cluster, Istio's among them.
		snapshot.DestinationRule:     {"cart": "traffic careful, from cluster.local/web, from ferry.example/web", "web": "traffic elsewhere"},
		snapshot.AuthorizationPolicy: {"deny": "by all"},
		snapshot.EnvoyFilter:         {"filters": "for careful"},
		snapshot.Sidecar:             {"web": "cart." + w.namespace + ".svc.cluster.local, cart.global"},
		snapshot.ServiceEntry:        {"legacy": "legacy.example.com"},
		snapshot.VirtualService:      {"cart": "cart.global"},
	}
	got := map[snapshot.Kind]map[string]string{}
	for kind := range want {
		list, err := w.of(kind).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		got[kind] = map[string]string{}
		for i := range list.Items {
			says, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "hosts")
			got[kind][list.Items[i].GetName()] = strings.Join(says, " ")
		}
	}
	assert.Equal(t, want, got)

	states := map[string]string{}
	for _, kind := range []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualDestination, snapshot.ServiceDependency} {
		list, err := w.of(kind).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			states[kind.String()+" "+list.Items[i].GetName()], _, _ = unstructured.NestedString(list.Items[i].Object, "status", "state")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		assert.Equal(t, "ACCEPTED", states[name], name)
	}
	assert.Len(t, states, 6)
}
