package offline_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const reviews = `apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: bookinfo}
spec: {ports: [{port: 9080}]}
`

const policy = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata:
  name: slow
  namespace: bookinfo
spec:
  policy:
    requestTimeout: 3s
`

// folder makes a file system of names and contents.
func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

func TestLoad(t *testing.T) {
	t.Parallel()
	input, issues, err := offline.Load(folder(map[string]string{
		"c1/svc.yaml":           "# two of them\n---\n" + reviews + "---\n" + strings.Replace(reviews, "reviews", "details", 1) + "---\n",
		"c1/deep/list.yml":      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: b}}\n- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n",
		"c2/all.json":           `{"apiVersion":"v1","kind":"ServiceList","items":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"ratings","namespace":"bookinfo"}}]}`,
		"management/p.yaml":     policy,
		"management/notes.txt":  "not: [yaml",
		"management/.hidden/x":  "",
		"management/.a.yaml":    "not: [yaml",
		".git/config.yaml":      "not: [yaml",
		"README.md":             "words",
		"c2/role.yaml":          "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: b}\n",
		"management/dash.yaml":  "apiVersion: settings.mesh.gloo.solo.io/v1\nkind: Dashboard\nmetadata: {name: d, namespace: gloo-mesh}\n",
		"management/kc.yaml":    "apiVersion: multicluster.solo.io/v1alpha1\nkind: KubernetesCluster\nmetadata: {name: c3, namespace: gloo-mesh}\nspec: {clusterDomain: three.local}\n",
		"management/kc-c1.yaml": "apiVersion: multicluster.solo.io/v1alpha1\nkind: KubernetesCluster\nmetadata: {name: c1, namespace: gloo-mesh}\nspec: {clusterDomain: one.local}\n",
	}))
	require.NoError(t, err)

	require.Len(t, input.Clusters, 3)
	c1, c2, c3 := input.Clusters[0], input.Clusters[1], input.Clusters[2]
	assert.Equal(t, "c1", c1.Name)
	assert.Equal(t, "one.local", c1.Domain)
	require.Len(t, c1.Services, 2)
	assert.Equal(t, "details", c1.Services[0].Name, "ascending, whatever the file's order")
	assert.Equal(t, int32(9080), c1.Services[1].Spec.Ports[0].Port)
	assert.Len(t, c1.Pods, 1)
	assert.Len(t, c1.Nodes, 1)
	assert.Equal(t, snapshot.Synced, c1.Sync)
	require.Len(t, c2.Services, 1)
	assert.Empty(t, c2.Services[0].Kind, "as an informer gives it")
	assert.Equal(t, "c3", c3.Name)
	assert.Equal(t, snapshot.Unsynced, c3.Sync, "registered, but nothing is known of it")
	assert.Equal(t, "three.local", c3.Domain)
	assert.NotEmpty(t, c3.Reason)

	assert.Equal(t, snapshot.DefaultNamespace, input.Management.Namespace)
	require.Len(t, input.Management.TrafficPolicies, 1)
	assert.Equal(t, "slow", input.Management.TrafficPolicies[0].Name)

	var told []string
	for _, issue := range issues {
		assert.Equal(t, snapshot.KindUnsupported, issue.Code)
		told = append(told, issue.Message)
	}
	assert.Equal(t, []string{
		"1 of kind Role (rbac.authorization.k8s.io/v1) are not read from the folder c2",
		"1 of kind Dashboard (settings.mesh.gloo.solo.io/v1) are not read from the folder management",
	}, told)
}

func TestLoadDescribed(t *testing.T) {
	t.Parallel()
	input, _, err := offline.Load(folder(map[string]string{
		"c1/cluster.yaml": "apiVersion: offline/v1\nkind: Cluster\nspec: {domain: one.local, sync: stale, reason: no answer}\n",
		"c1/svc.yaml":     reviews,
		"c2/cluster.yaml": "apiVersion: offline/v1\nkind: Cluster\nspec: {sync: unsynced}\n",
		"management/management.yaml": `apiVersion: offline/v1
kind: Management
spec:
  namespace: mesh-system
  failures:
  - ref: {kind: VirtualService, cluster: c1, namespace: bookinfo, name: reviews}
    message: denied
  - ref: {kind: Gateway, cluster: c1, namespace: bookinfo, name: gw}
    message: denied
`,
	}))
	require.NoError(t, err)
	c1, c2 := input.Clusters[0], input.Clusters[1]
	assert.Equal(t, "one.local", c1.Domain)
	assert.Equal(t, snapshot.Stale, c1.Sync)
	assert.Equal(t, "no answer", c1.Reason)
	assert.Equal(t, snapshot.Unsynced, c2.Sync)
	assert.Equal(t, "mesh-system", input.Management.Namespace)
	require.Len(t, input.Failures, 2)
	assert.Equal(t, snapshot.Gateway, input.Failures[0].Ref.Kind, "ascending by reference")
}

// basedOn describes a cluster's folder that is laid on others.
func basedOn(spec string) string {
	return "apiVersion: offline/v1\nkind: Cluster\nspec: " + spec + "\n"
}

// TestLoadBases: objects of bases are there unless left out; those of the folder
// are merged into them.
func TestLoadBases(t *testing.T) {
	t.Parallel()
	details := strings.Replace(reviews, "reviews", "details", 1)
	ratings := strings.Replace(reviews, "reviews", "ratings", 1)
	input, _, err := offline.Load(folder(map[string]string{
		"c1/a.yaml":       reviews + "---\n" + details,
		"c1/b/deep.yaml":  ratings,
		"c2/cluster.yaml": basedOn("{bases: [../c1/a.yaml, ../c1/b], without: [{kind: Service, namespace: bookinfo, name: details}], domain: two.local}"),
		"c2/own.yaml": strings.Replace(reviews, "ports: [{port: 9080}]", "ports: null, clusterIP: 10.0.0.1", 1) +
			"---\n" + strings.Replace(reviews, "reviews", "productpage", 1),
	}))
	require.NoError(t, err)
	c1, c2 := input.Clusters[0], input.Clusters[1]
	assert.Len(t, c1.Services, 3)
	assert.Equal(t, "two.local", c2.Domain)
	require.Len(t, c2.Services, 3)
	assert.Equal(t, "productpage", c2.Services[0].Name)
	assert.Equal(t, "ratings", c2.Services[1].Name)
	merged := c2.Services[2]
	assert.Equal(t, "reviews", merged.Name)
	assert.Empty(t, merged.Spec.Ports)
	assert.Equal(t, "10.0.0.1", merged.Spec.ClusterIP)
	assert.Len(t, c1.Services[2].Spec.Ports, 1, "the base stays as it is")
}

// TestDir: bases may lie outside of the folder that is read.
func TestDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, folder(map[string]string{
		"shared/reviews.yaml":   reviews,
		"case/c1/cluster.yaml":  basedOn("{bases: [../../shared]}"),
		"case/c1/own/wrong.yml": strings.Replace(reviews, "port: 9080", "port: many", 1),
	})))
	_, _, err := offline.Load(offline.Dir(filepath.Join(dir, "case")))
	require.ErrorContains(t, err, "c1/own/wrong.yml:4: document 1: Service: field spec.ports.port is a string")
	require.NoError(t, os.Remove(filepath.Join(dir, "case/c1/own/wrong.yml")))
	input, _, err := offline.Load(offline.Dir(filepath.Join(dir, "case")))
	require.NoError(t, err)
	assert.Len(t, input.Clusters[0].Services, 1)
}

// TestLoadServerOptions: what was dumped from a management cluster is translated as its
// server does, unless the folder says otherwise, and the statuses that follow
// name the options again.
func TestLoadServerOptions(t *testing.T) {
	t.Parallel()
	const registration = `apiVersion: multicluster.solo.io/v1alpha1
kind: KubernetesCluster
metadata: {name: c1, namespace: gloo-mesh}
status:
  server: {version: v1.2.3, disallowIntersectingConfig: true}
`
	const refused = "apiVersion: offline/v1\nkind: Management\nspec: {refuseIntersecting: %t}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"dumped":          {map[string]string{"management/c1.yaml": registration}, true},
		"says otherwise":  {map[string]string{"management/c1.yaml": registration, "management/m.yaml": fmt.Sprintf(refused, false)}, false},
		"says so":         {map[string]string{"management/m.yaml": fmt.Sprintf(refused, true), "management/z.yaml": strings.Split(registration, "status:")[0]}, true},
		"nobody has said": {map[string]string{"management/c1.yaml": strings.Split(registration, "status:")[0]}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input, _, err := offline.Load(folder(c.files))
			require.NoError(t, err)
			assert.Equal(t, c.want, input.RefuseIntersecting)
			input.Version = "v2"
			for s := range engine.Translate(input).Output.Statuses.All() {
				assert.Equal(t, &multiclusterv1alpha1.Server{Version: "v2", DisallowIntersectingConfig: c.want, KeptNamespaces: []string{"gloo-mesh"}}, s.Value.(*multiclusterv1alpha1.KubernetesClusterStatus).Server)
			}
		})
	}
}

// mistakes are folders that cannot be loaded, by name.
type mistakes map[string]struct {
	files map[string]string
	want  []string // the lines of the error, each a part
}

func (m mistakes) check(t *testing.T) {
	t.Helper()
	for name, c := range m {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input, _, err := offline.Load(folder(c.files))
			require.Error(t, err)
			assert.Nil(t, input)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), err.Error())
			for i, want := range c.want {
				assert.Contains(t, lines[i], want)
			}
		})
	}
}

func TestLoadMistakes(t *testing.T) {
	t.Parallel()
	mistakes{
		"nothing":       {map[string]string{"notes.txt": ""}, []string{"no folder in it; make one for each cluster"}},
		"beside":        {map[string]string{"p.yaml": policy, "c1/s.yaml": reviews}, []string{"p.yaml: is outside of the folders"}},
		"folder's name": {map[string]string{"My_Cluster/s.yaml": reviews}, []string{"My_Cluster: a folder is named like its cluster"}},
		"unknown field": {
			map[string]string{"management/p.yaml": policy + "    retires: {attempts: 3}\n"},
			[]string{"management/p.yaml:9: document 1: TrafficPolicy has no field spec.policy.retires; correct"},
		},
		"unknown field in a later document": {
			map[string]string{"management/p.yaml": "# first\n---\n" + policy + "---\n" + strings.ReplaceAll(policy, "requestTimeout", "timeout")},
			[]string{"management/p.yaml:19: document 2: TrafficPolicy has no field spec.policy.timeout"},
		},
		"wrong type": {
			map[string]string{"management/p.yaml": policy + "    retries: {attempts: many}\n"},
			[]string{"management/p.yaml:9: document 1: TrafficPolicy: field spec.policy.retries.attempts is a string, but must be a whole number"},
		},
		"looks like something else to YAML": {
			map[string]string{"c1/s.yaml": strings.Replace(reviews, "name: reviews", "name: y", 1)},
			[]string{"c1/s.yaml:3: document 1: Service: field metadata.name is a bool, but must be a string; put it in quotes"},
		},
		"unknown kind of ours": {
			map[string]string{"management/p.yaml": strings.Replace(policy, "TrafficPolicy", "TraficPolicy", 1)},
			[]string{"management/p.yaml:2: document 1: group networking.mesh.gloo.solo.io has no kind TraficPolicy"},
		},
		"old version": {
			map[string]string{"c1/s.yaml": "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a, namespace: b}\n"},
			[]string{"c1/s.yaml:1: document 1: Deployment is read as apps/v1, not as apps/v1beta1"},
		},
		"VirtualMesh in a cluster": {
			map[string]string{"c1/p.yaml": strings.ReplaceAll(policy, "TrafficPolicy", "VirtualMesh")},
			[]string{"c1/p.yaml:2: document 1: a VirtualMesh belongs to the management plane; move it to the folder management"},
		},
		"not YAML": {
			map[string]string{"c1/s.yaml": reviews + "---\na: [\nb: 1\n"},
			[]string{"c1/s.yaml:7: document 2: not YAML"},
		},
		"duplicate key": {
			map[string]string{"c1/s.yaml": reviews + "kind: Service\n"},
			[]string{`c1/s.yaml:5: document 1: not YAML: key "kind" already set in map`},
		},
		"no object":    {map[string]string{"c1/s.yaml": "just words\n"}, []string{"c1/s.yaml:1: document 1: is not a Kubernetes object"}},
		"no kind":      {map[string]string{"c1/s.yaml": "metadata: {name: a}\n"}, []string{"has no apiVersion or no kind"}},
		"no name":      {map[string]string{"c1/s.yaml": strings.Replace(reviews, "name: reviews, ", "", 1)}, []string{"c1/s.yaml:3: document 1: Service has no name"}},
		"no namespace": {map[string]string{"c1/s.yaml": strings.Replace(reviews, ", namespace: bookinfo", "", 1)}, []string{"Service reviews has no namespace; add metadata.namespace"}},
		"twice": {
			map[string]string{"c1/a.yaml": reviews, "c1/b.yaml": "---\n" + reviews},
			[]string{"c1/b.yaml:4: document 1: Service c1/bookinfo/reviews is in c1/a.yaml:1 already"},
		},
		"item of a list": {
			map[string]string{"management/l.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: networking.mesh.gloo.solo.io/v1\n  kind: TrafficPolicy\n  metadata: {name: a, namespace: b}\n  spec:\n    oops: 1\n"},
			[]string{"management/l.yaml:8: document 1: TrafficPolicy has no field spec.oops"},
		},
		"unsynced with objects": {
			map[string]string{"c1/c.yaml": "apiVersion: offline/v1\nkind: Cluster\nspec: {sync: unsynced}\n", "c1/s.yaml": reviews},
			[]string{"c1: sync is unsynced"},
		},
		"sync misspelt":  {map[string]string{"c1/c.yaml": "apiVersion: offline/v1\nkind: Cluster\nspec: {sync: old}\n"}, []string{`sync "old" is none of unsynced, stale, synced`}},
		"wrong describe": {map[string]string{"c1/c.yaml": "apiVersion: offline/v1\nkind: Management\n"}, []string{"c1/c.yaml:2: document 1: kind Management does not describe the folder c1"}},
		"all are reported": {
			map[string]string{"c1/a.yaml": "words\n", "c2/b.yaml": "words\n---\nwords\n", "management/p.yaml": policy},
			[]string{"c1/a.yaml:1:", "c2/b.yaml:1:", "c2/b.yaml:3: document 2:"},
		},
	}.check(t)
}

func TestBaseMistakes(t *testing.T) {
	t.Parallel()
	mistakes{
		"no such base": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../shared.yaml]}")},
			[]string{"shared.yaml: cannot be read"},
		},
		"base outside of what can be read": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../../c2]}")},
			[]string{"../c2: cannot be read"},
		},
		"base without manifests": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [notes]}"), "c1/notes/read.me": ""},
			[]string{"c1/c.yaml:3: document 1: base notes has no manifests; correct the path"},
		},
		"base of a base": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../c2]}"), "c2/c.yaml": basedOn("{bases: [../c3]}"), "c3/s.yaml": reviews},
			[]string{"c2/c.yaml:1: document 1: a base cannot have bases"},
		},
		"the same object in two bases": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../c2, ../c3]}"), "c2/s.yaml": reviews, "c3/s.yaml": reviews},
			[]string{"c3/s.yaml:3: document 1: Service reviews is in the base c2/s.yaml already"},
		},
		"an object of a base twice": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../c2]}"), "c1/s.yaml": reviews + "---\n" + reviews, "c2/s.yaml": reviews},
			[]string{"c1/s.yaml:8: document 2: Service c1/bookinfo/reviews is in c1/s.yaml:1 already"},
		},
		"without what no base has": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../c2], without: [{kind: Pod, namespace: b, name: p}]}"), "c2/s.yaml": reviews},
			[]string{"c1/c.yaml:3: document 1: no base has the Pod b/p; remove this line"},
		},
		"bases twice": {
			map[string]string{"c1/c.yaml": basedOn("{bases: [../c2]}") + "---\n" + basedOn("{bases: [../c2]}"), "c2/s.yaml": reviews},
			[]string{"c1/c.yaml:7: document 2: c1/c.yaml names bases already; name all of them there"},
		},
	}.check(t)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	at := func(kind snapshot.Kind, cluster, name string) *snapshot.Object {
		return &snapshot.Object{
			Ref:     snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: "bookinfo", Name: name},
			Content: &snapshot.Content{Labels: map[string]string{"a": "b"}, Spec: map[string]any{"hosts": []string{name}}},
		}
	}
	files, err := offline.Files(&snapshot.Output{Parts: snapshot.ListOf([]*snapshot.Part{
		{Key: "1", Objects: []*snapshot.Object{at(snapshot.VirtualService, "c1", "reviews"), at(snapshot.Mesh, "", "m")}},
		{Key: "2", Objects: []*snapshot.Object{at(snapshot.VirtualService, "c1", "details")}},
	})})
	require.NoError(t, err)
	assert.Equal(t, []string{"c1/virtualservice.yaml", "management/mesh.yaml"}, slices.Sorted(maps.Keys(files)))
	assert.Equal(t, `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  labels:
    a: b
    cluster.multicluster.solo.io: c1
  name: details
  namespace: bookinfo
spec:
  hosts:
  - details
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  labels:
    a: b
    cluster.multicluster.solo.io: c1
  name: reviews
  namespace: bookinfo
spec:
  hosts:
  - reviews
`, string(files["c1/virtualservice.yaml"]))
}
