package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
)

// versionBefore knows all but a field of TrafficPolicies.
const versionBefore, versionAfter = "v1.0.0", "v1.1.0"

// TestUpgrade upgrades the management plane while policies are edited all the time. The new version
// of each of two replicas is ready before one of the old version ends, as in a Deployment; the one
// that leads is the last to end. Nothing is deleted, nothing goes back and forth, nothing is
// written for nothing, and all edits are in force soon.
func TestUpgrade(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	w := newEnvironment(t, withBookinfo)
	before, after := buildVersion(t, versionBefore, olderTypes(t)), buildVersion(t, versionAfter, "")
	w.binary = before
	w.must("install", "--context", "cluster-1")
	leader := w.startReplica()
	standby := w.startReplica()
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	require.Contains(t, leader.log.String(), "leading")
	require.NotContains(t, standby.log.String(), "leading")
	w.apply("cluster-1", manifests.VirtualMesh())
	w.apply("cluster-1", manifests.Policies())
	e := &edits{environment: w, in: map[string]int{}}
	for range editedPolicies {
		require.NoError(t, e.edit(t.Context()))
	}
	e.await("the first edits")
	w.awaitRoutes(shifted)
	w.until("all is written", (&soak{environment: w}).differs)

	h := w.record()
	stop := e.keepOn()
	e.await("edits before the upgrade")
	assert.Empty(t, w.skew(before))
	assert.Equal(t, []string{"meshctl serve is installed in version v1.0.0", "1 custom resource type differ"}, w.skew(after))

	w.binary = after
	w.must("upgrade", "--context", "cluster-1")
	e.await("edits while only the old version runs, with the new types")
	assert.Equal(t, []string{"meshctl serve is installed in version v1.1.0", "1 custom resource type differ"}, w.skew(before))
	assert.Empty(t, w.skew(after))
	assert.Equal(t, versionBefore, w.served(), "the old version leads")

	second := w.startReplica()
	w.stop(standby.process)
	e.await("edits while one replica is of each version")
	assert.Equal(t, versionBefore, w.served(), "the old version leads")
	w.startReplica()
	w.stop(leader.process)
	e.await("edits while nobody led")
	assert.Empty(t, w.skew(after))
	w.until("the new version says that it leads", func(context.Context) error {
		if served := w.served(); served != versionAfter {
			return fmt.Errorf("version %s served last", served)
		}
		return nil
	})
	stop()
	e.await("the last edits")
	for _, p := range editedPolicies {
		w.awaitStateOf(p.kind, p.name, "ACCEPTED")
	}
	w.until("all is written", (&soak{environment: w}).differs)
	w.until("everything was seen", func(ctx context.Context) error { return h.behind(ctx, w.dynamic) })
	assert.Empty(t, h.violations())
	writes := h.writes()
	t.Logf("%d edits, %d not taken at first; written: %d times by the translation, %d by others of serve, %d by the upgrade and controllers",
		e.made, e.refused, writes[byTranslation], writes[byServe], writes[byInstall])
	assert.GreaterOrEqual(t, writes[byTranslation], 5*len(editedPolicies), "what was looked at")
	assert.Contains(t, second.log.String()+w.serve.log.String(), "leading")

	w.binary = before
	w.goesBackNot()
}

// goesBackNot: the version before refuses to take what only the new one can store.
func (w *environment) goesBackNot() {
	w.t.Helper()
	w.apply("cluster-1", []byte(newerPolicy))
	crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	names := []string{"trafficpolicies.networking.mesh.gloo.solo.io", "kubernetesclusters.multicluster.solo.io"}
	installed := func() (versions []string) {
		for _, name := range names {
			o, err := w.object("cluster-1", crd, "", name)
			require.NoError(w.t, err)
			versions = append(versions, o.GetResourceVersion())
		}
		return versions
	}
	was := installed()
	r := w.run("upgrade", "--context", "cluster-1")
	assert.NotZero(w.t, r.code)
	assert.Contains(w.t, r.stderr, "TrafficPolicy gloo-mesh/newer: spec.policy.csrf")
	assert.Equal(w.t, was, installed())
	d, err := w.object("cluster-1", kube.Deployments(), mgmt, "meshctl")
	require.NoError(w.t, err)
	assert.Equal(w.t, versionAfter, d.GetLabels()["app.kubernetes.io/version"])
}

const newerPolicy = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: newer, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {app: nobody}}}]
  policy: {csrf: {percentage: 100}}
`

// startReplica starts one more replica, and waits until it is ready: it leads, or stands by.
func (w *environment) startReplica() *server {
	w.t.Helper()
	w.startServe()
	return w.serve
}

// skew is what `meshctl version` of a binary says that differs, each up to what to do.
func (w *environment) skew(binary string) (out []string) {
	w.t.Helper()
	for _, text := range w.installedVersion(binary).Skew {
		head, _, _ := strings.Cut(text, ":")
		head, _, _ = strings.Cut(head, " from those")
		out = append(out, head)
	}
	return out
}

// served is the version that `meshctl version` says has served last.
func (w *environment) served() string { return w.installedVersion(w.binary).Server.Served }

type installedVersion struct {
	Server struct {
		Served string `json:"served"`
	} `json:"server"`
	Skew []string `json:"skew"`
}

func (w *environment) installedVersion(binary string) (v installedVersion) {
	w.t.Helper()
	used := w.binary
	defer func() { w.binary = used }()
	w.binary = binary
	require.NoError(w.t, json.Unmarshal([]byte(w.must("version", "--context", "cluster-1", "-o", "json").stdout), &v))
	return v
}

// buildVersion builds meshctl as a version; overlay may be empty.
func buildVersion(t *testing.T, version, overlay string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "meshctl-"+version)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-ldflags", "-X github.com/meshctl/meshctl/cmd/cmdutil.version="+version,
		"-o", path, "github.com/meshctl/meshctl").CombinedOutput()
	require.NoError(t, err, "building meshctl: %s", out)
	return path
}

// olderTypes is an overlay for the compiler in which the type of TrafficPolicies lacks a field.
func olderTypes(t *testing.T) string {
	t.Helper()
	original, err := filepath.Abs("../../engine/api/crds/networking.mesh.gloo.solo.io_trafficpolicies.yaml")
	require.NoError(t, err)
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	var crd unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal(text, &crd.Object))
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	field := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "policy", "properties", "csrf"}
	for _, v := range versions {
		_, found, err := unstructured.NestedMap(v.(map[string]any), field...)
		require.NoError(t, err)
		require.True(t, found)
		unstructured.RemoveNestedField(v.(map[string]any), field...)
	}
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	text, err = yaml.Marshal(crd.Object)
	require.NoError(t, err)
	older, overlay := filepath.Join(t.TempDir(), "older.yaml"), filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(older, text, 0o600))
	text, err = json.Marshal(map[string]any{"Replace": map[string]string{original: older}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	return overlay
}

// firstMark is the mark of the first edit; it is higher than any other number of an object.
const firstMark = 1_000_000

// editedPolicy is edited by a mark, which is in all objects that follow from it.
type editedPolicy struct {
	kind     schema.GroupVersionResource
	name     string
	manifest string
	in       []place
}

type place struct {
	cluster string
	kind    schema.GroupVersionResource
	name    string
}

// editedPolicies are about different objects, so that the latest mark of an object is that of one of them.
var editedPolicies = []editedPolicy{
	{kube.Policies("trafficpolicies"), "upgrade-timeout", `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: upgrade-timeout, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: %ds}
`, []place{{"cluster-1", kube.Networking("virtualservices"), "reviews"}}},
	{kube.Policies("trafficpolicies"), "upgrade-header", `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: upgrade-header, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {app: ratings}, namespaces: [bookinfo]}}]
  policy: {headerManipulation: {appendResponseHeaders: {edit: "%d"}}}
`, []place{{"cluster-1", kube.Networking("virtualservices"), "ratings"}, {"cluster-2", kube.Networking("virtualservices"), "ratings"}}},
	{kube.Policies("trafficpolicies"), "upgrade-outliers", `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: upgrade-outliers, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {outlierDetection: {consecutiveErrors: %d}}
`, []place{{"cluster-1", kube.Networking("destinationrules"), "details"}}},
	{kube.Policies("accesspolicies"), "upgrade-access", `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: upgrade-access, namespace: gloo-mesh}
spec:
  sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-ratings, namespace: bookinfo, clusterName: cluster-1}]}}]
  destinationSelector: [{kubeServiceMatcher: {labels: {app: details}, namespaces: [bookinfo]}}]
  allowedPaths: ["/%d"]
`, []place{{"cluster-1", kube.Security("authorizationpolicies"), "details"}}},
}

// edits is a user who edits these policies in turn, and never asks for the same twice.
type edits struct {
	*environment
	mu sync.Mutex
	// made counts the edits; in has the mark of each policy.
	made, refused int
	in            map[string]int
}

// edit makes the next edit.
func (e *edits) edit(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	p, mark := editedPolicies[e.made%len(editedPolicies)], firstMark+e.made
	if err := e.clients["cluster-1"].ApplyYAML(ctx, fmt.Appendf(nil, p.manifest, mark)); err != nil {
		return err
	}
	e.in[p.name] = mark
	return nil
}

// keepOn edits several times a second, until stop is called. While a type is written, the API server takes no edit of it
// for a moment.
func (e *edits) keepOn() (stop func()) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := e.edit(ctx); err != nil && ctx.Err() == nil {
				e.t.Logf("an edit was not taken: %v", err)
				e.refused++
			}
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	e.t.Cleanup(stop)
	return stop
}

// await waits until the edits that were made until now are in force, in all clusters.
func (e *edits) await(what string) {
	e.t.Helper()
	e.mu.Lock()
	marks := maps.Clone(e.in)
	e.mu.Unlock()
	began := time.Now()
	e.until(what, func(context.Context) error {
		for _, p := range editedPolicies {
			for _, at := range p.in {
				o, err := e.object(at.cluster, at.kind, "bookinfo", at.name)
				if err != nil {
					return err
				}
				if got := latestMark(asJSON(field(o, "spec"))); got < marks[p.name] {
					return fmt.Errorf("%s of %s has edit %d of %s, not %d", at.name, at.cluster, got, p.name, marks[p.name])
				}
			}
		}
		return nil
	})
	e.t.Logf("%s were in force after %s", what, time.Since(began).Round(time.Millisecond))
}
