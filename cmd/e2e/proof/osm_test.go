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

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestOSMProxiesMatchPlan is TestProxiesMatchPlan for Open Service Mesh.
func TestOSMProxiesMatchPlan(t *testing.T) {
	shard.Only(t, shard.OSM)
	w := newOSMEnvironment(t)
	plan, _ := w.proveOSM(t, "closed", nil)
	for _, p := range plan.Meshes {
		require.NotNil(t, p.Mesh.Spec.Osm, "the mesh must be discovered as Open Service Mesh")
		require.Equal(t, "osm", p.Mesh.Spec.Osm.MeshName)
		require.True(t, strings.HasPrefix(p.Mesh.Spec.Osm.Installation.Version, "v1.2."), p.Mesh.Spec.Osm.Installation.Version)
	}
	files, err := filepath.Glob("testdata/osm/[0-9]*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	undetected := osmMutations()
	for _, file := range files {
		documents, err := os.ReadFile(file)
		require.NoError(t, err)
		plan, configs := w.proveOSM(t, strings.TrimSuffix(filepath.Base(file), ".yaml"), documents)
		w.removeDetected(t, plan, configs, undetected)
	}
	for name := range undetected {
		t.Errorf("%s: no Plan has such a value, or the change is not detected", name)
	}
	w.proveOpen(t)
}

// newOSMEnvironment is one cluster with Open Service Mesh and an application.
func newOSMEnvironment(t *testing.T) *environment {
	t.Helper()
	helper := sandboxtest.OSM(t) // building it may take longer than everything else
	ctx := t.Context()
	c := sandboxtest.Clusters(t, 1)[0]
	require.NoError(t, c.InstallOSM(ctx, local.OSMOptions{Helper: helper}))
	config, err := c.Config()
	require.NoError(t, err)
	w := &environment{clusters: map[string]*local.Cluster{c.Name(): c}, memo: engine.New(engine.Options{})}
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
	w.sink = apply.New(apply.Options{Widen: engine.Widen})
	w.sink.Set("", w.source.Link(""))
	w.sink.Set(c.Name(), w.source.Link(c.Name()))
	w.run(t)
	return w
}

// findOSMProxies waits for the pods of the application.
func (w *environment) findOSMProxies(ctx context.Context, t *testing.T, cluster string) {
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

// proveOSM applies a case and waits until the proxies match the Plan.
func (w *environment) proveOSM(t *testing.T, name string, documents []byte) (*snapshot.Plan, map[string]*envoy.Config) {
	t.Helper()
	objects, err := kube.Decode(documents)
	require.NoError(t, err, name)
	require.NoError(t, w.management.Apply(t.Context(), objects...), name)
	written := map[string]int64{}
	for _, o := range objects {
		written[o.GetKind()+" "+o.GetName()] = w.generation(t, o.GetKind(), o.GetName())
	}
	return w.convergeOSM(t, name, func(plan *snapshot.Plan) error { return osmAccepted(plan, written) })
}

// osmAccepted returns an error if a policy has not been read yet, or is not
// accepted.
func osmAccepted(plan *snapshot.Plan, written map[string]int64) error {
	if err := readPolicies(plan, written); err != nil {
		return err
	}
	var names []string
	for policy := range written {
		_, name, _ := strings.Cut(policy, " ")
		names = append(names, name)
	}
	return accepted(plan, names)
}

// convergeOSM waits until ready returns nil and every proxy matches the Plan.
func (w *environment) convergeOSM(t *testing.T, name string, ready func(*snapshot.Plan) error) (plan *snapshot.Plan, configs map[string]*envoy.Config) {
	t.Helper()
	started, count := time.Now(), 0
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	require.NoError(t, kube.Until(ctx, name+": all proxies match the Plan", func(ctx context.Context) (err error) {
		if plan, err = w.translate(ctx); err != nil {
			return err
		}
		if len(plan.Meshes) != 1 || len(plan.Workloads) != len(w.proxies) {
			return fmt.Errorf("%d meshes and %d workloads are discovered so far", len(plan.Meshes), len(plan.Workloads))
		}
		if err := ready(plan); err != nil {
			return err
		}
		configs, count = map[string]*envoy.Config{}, 0
		var wrong []string
		for _, p := range w.proxies {
			data, err := w.clusters[p.cluster].Proxy(ctx, p.namespace, p.pod)
			if err != nil {
				return err
			}
			if configs[p.pod], err = envoy.Parse(data); err != nil {
				return err
			}
			all := osmFacts(plan, p)
			count += len(all)
			for _, d := range differences(all, configs[p.pod]) {
				wrong = append(wrong, p.String()+": "+d)
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d of %d differ:\n%s", len(wrong), count, strings.Join(wrong, "\n"))
		}
		return nil
	}))
	assert.Greater(t, count, 50, "%s: the facts have gone", name)
	t.Logf("%s: %d facts in %d proxies hold after %s", name, count, len(configs), time.Since(started).Round(10*time.Millisecond))
	return plan, configs
}

// proveOpen switches to permissive mode: all calls are allowed, and the policies
// are reported as ineffective.
func (w *environment) proveOpen(t *testing.T) {
	t.Helper()
	meshConfig := schema.GroupVersionResource{Group: "config.openservicemesh.io", Version: "v1alpha2", Resource: "meshconfigs"}
	config, err := w.management.Get(t.Context(), meshConfig, "osm-system", "osm-mesh-config")
	require.NoError(t, err)
	config.Object["spec"].(map[string]any)["traffic"].(map[string]any)["enablePermissiveTrafficPolicyMode"] = true
	config.SetManagedFields(nil)
	require.NoError(t, w.management.Apply(t.Context(), config))
	plan, _ := w.convergeOSM(t, "open", func(plan *snapshot.Plan) error {
		if mesh := plan.Meshes[0]; !mesh.Open || mesh.DenyByDefault != nil {
			return errors.New("the mesh is not in permissive mode yet")
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
