package proof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/envoy"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestProxiesOfOSMAreToldThePlan does for an Open Service Mesh what
// TestProxiesAreToldThePlan does for Istio.
func TestProxiesOfOSMAreToldThePlan(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole cluster")
	}
	w := newOSMWorld(t)
	plan, _ := w.proveOSM(t, "closed", nil)
	for _, p := range plan.Meshes {
		require.NotNil(t, p.Mesh.Spec.Osm, "the mesh is taken for another one")
		require.Equal(t, "osm", p.Mesh.Spec.Osm.MeshName)
		require.True(t, strings.HasPrefix(p.Mesh.Spec.Osm.Installation.Version, "v1.2."), p.Mesh.Spec.Osm.Installation.Version)
	}
	files, err := filepath.Glob("testdata/osm/[0-9]*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	unnoticed := osmLies()
	for _, file := range files {
		documents, err := os.ReadFile(file)
		require.NoError(t, err)
		plan, told := w.proveOSM(t, strings.TrimSuffix(filepath.Base(file), ".yaml"), documents)
		w.doubtOSM(t, plan, told, unnoticed)
	}
	for name := range unnoticed {
		t.Errorf("%s: nothing in any Plan has it, or nobody noticed", name)
	}
	w.proveOpen(t)
}

// newOSMWorld is one cluster with Open Service Mesh and an application.
func newOSMWorld(t *testing.T) *world {
	t.Helper()
	helper := sandboxtest.OSM(t) // which may take longer than all else
	ctx := t.Context()
	c := sandboxtest.Clusters(t, 1)[0]
	require.NoError(t, c.InstallOSM(ctx, local.OSMOptions{Helper: helper}))
	config, err := c.Config()
	require.NoError(t, err)
	w := &world{clusters: map[string]*local.Cluster{c.Name(): c}, memo: engine.New(engine.Options{})}
	w.management, err = c.Client()
	require.NoError(t, err)
	application, err := os.ReadFile("testdata/osm/cluster.yaml")
	require.NoError(t, err)
	w.write(ctx, t, string(application))
	w.findOSMProxies(ctx, t, c.Name())
	_, err = registration.InstallCRDs(ctx, config)
	require.NoError(t, err)
	w.write(ctx, t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: gloo-mesh}\n")

	w.source, err = watch.New(watch.Options{Management: config})
	require.NoError(t, err)
	w.source.Set(c.Name(), "", config, nil)
	w.sink = apply.New(apply.Options{})
	w.sink.Set("", config)
	w.sink.Set(c.Name(), config)
	w.run(t)
	return w
}

// findOSMProxies waits for the pods of the application.
func (w *world) findOSMProxies(ctx context.Context, t *testing.T, cluster string) {
	t.Helper()
	require.NoError(t, kube.Until(ctx, "pods of the application", func(ctx context.Context) error {
		w.proxies = nil
		for _, namespace := range []string{"front", "shop"} {
			pods, err := w.management.List(ctx, kube.Pods(), namespace)
			if err != nil {
				return err
			}
			for _, pod := range pods {
				if kube.ReadyContainers(&pod) != "2/2" {
					return fmt.Errorf("%s is not ready", pod.GetName())
				}
				w.proxies = append(w.proxies, proxy{cluster: cluster, namespace: namespace, pod: pod.GetName(), labels: pod.GetLabels()})
			}
		}
		if len(w.proxies) != 5 {
			return fmt.Errorf("there are %d", len(w.proxies))
		}
		return nil
	}))
}

// proveOSM writes a case and waits until it is true.
func (w *world) proveOSM(t *testing.T, name string, documents []byte) (*snapshot.Plan, map[string]*envoy.Config) {
	t.Helper()
	objects, err := kube.Decode(documents)
	require.NoError(t, err, name)
	require.NoError(t, w.management.Apply(t.Context(), objects...), name)
	written := map[string]int64{}
	for _, o := range objects {
		plural := map[string]string{"TrafficPolicy": "trafficpolicies", "AccessPolicy": "accesspolicies"}[o.GetKind()]
		stored, err := w.management.Get(t.Context(), kube.Policies(plural), o.GetNamespace(), o.GetName())
		require.NoError(t, err, name)
		written[o.GetKind()+" "+o.GetName()] = stored.GetGeneration()
	}
	return w.convergeOSM(t, name, func(plan *snapshot.Plan) error { return osmAccepted(plan, written) })
}

// osmAccepted reports which policies are not read yet, or not accepted.
func osmAccepted(plan *snapshot.Plan, written map[string]int64) error {
	var names []string
	for _, p := range plan.Policies {
		want, ok := written[p.Ref.Kind.String()+" "+p.Ref.Name]
		if !ok {
			continue
		}
		if got := p.Policy.GetGeneration(); got != want {
			return fmt.Errorf("%s: generation %d has been read, not %d", p.Ref, got, want)
		}
		names = append(names, p.Ref.Name)
	}
	if len(names) != len(written) {
		return errors.New("not all policies have been read yet")
	}
	return accepted(plan, names)
}

// convergeOSM waits until ready says so and every proxy is told what the Plan means.
func (w *world) convergeOSM(t *testing.T, name string, ready func(*snapshot.Plan) error) (plan *snapshot.Plan, told map[string]*envoy.Config) {
	t.Helper()
	started, count := time.Now(), 0
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	require.NoError(t, kube.Until(ctx, name+": proxies are told what is planned", func(ctx context.Context) (err error) {
		if plan, err = w.translate(ctx); err != nil {
			return err
		}
		if len(plan.Meshes) != 1 || len(plan.Workloads) != len(w.proxies) {
			return fmt.Errorf("%d meshes and %d workloads are discovered so far", len(plan.Meshes), len(plan.Workloads))
		}
		if err := ready(plan); err != nil {
			return err
		}
		told, count = map[string]*envoy.Config{}, 0
		var wrong []string
		for _, p := range w.proxies {
			if told[p.pod], err = w.clusters[p.cluster].Proxy(ctx, p.namespace, p.pod); err != nil {
				return err
			}
			all := osmFacts(plan, p)
			count += len(all)
			for _, d := range differences(all, told[p.pod]) {
				wrong = append(wrong, p.String()+": "+d)
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d of %d differ:\n%s", len(wrong), count, strings.Join(wrong, "\n"))
		}
		return nil
	}))
	assert.Greater(t, count, 50, "%s: the facts have gone", name)
	t.Logf("%s: %d facts in %d proxies hold after %s", name, count, len(told), time.Since(started).Round(10*time.Millisecond))
	return plan, told
}

// proveOpen switches to the mode in which policies mean nothing: everybody may
// call everybody, and the policies are said to be without effect.
func (w *world) proveOpen(t *testing.T) {
	t.Helper()
	meshConfig := schema.GroupVersionResource{Group: "config.openservicemesh.io", Version: "v1alpha2", Resource: "meshconfigs"}
	config, err := w.management.Get(t.Context(), meshConfig, "osm-system", "osm-mesh-config")
	require.NoError(t, err)
	config.Object["spec"].(map[string]any)["traffic"].(map[string]any)["enablePermissiveTrafficPolicyMode"] = true
	config.SetManagedFields(nil)
	require.NoError(t, w.management.Apply(t.Context(), config))
	plan, _ := w.convergeOSM(t, "open", func(plan *snapshot.Plan) error {
		if mesh := plan.Meshes[0]; !mesh.Open || mesh.DenyByDefault != nil {
			return errors.New("the mesh is still taken for closed")
		}
		return nil
	})
	for _, p := range plan.Policies {
		if p.Ref.Kind == snapshot.AccessPolicy {
			require.NotEmpty(t, p.Verdicts, p.Ref)
			for _, v := range p.Verdicts {
				assert.False(t, v.Accepted, "%s is said to be in force on %s", p.Ref, v.Destination)
			}
		}
	}
}
