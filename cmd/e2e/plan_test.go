package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// plannedEdits is how many random edits are planned, made and compared.
const plannedEdits = 200

// TestPlan makes random edits of policies: what plan says of each one is object by object what serve
// then writes, and nothing else is written.
func TestPlan(t *testing.T) {
	shard.Only(t, shard.Soak)
	t.Parallel()
	w := newEnvironment(t, withBookinfo)
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		w.must("cluster", "register", cluster, "--remote-context", cluster, "--mgmt-context", "cluster-1")
	}
	w.startServe()
	w.apply("cluster-1", manifests.VirtualMesh())
	w.apply("cluster-1", manifests.Policies())
	w.awaitRoutes(shifted)
	w.until("all is written", (&soak{environment: w}).differs)

	e := &editor{random: rand.New(rand.NewPCG(waittest.Seed(t), 0))}
	objects, harm, none := 0, 0, 0
	var created time.Time // the last object
	for made := 0; made < plannedEdits; {
		c := e.draw()
		if c.namespace != mgmt {
			continue
		}
		made++
		if c.manifest != "" {
			// Of two of one second the name decides, and another second may begin after the plan.
			time.Sleep(time.Until(created.Truncate(time.Second).Add(time.Second)))
		}
		planned := w.plan(c)
		before := w.generatedVersions()
		if c.manifest != "" {
			w.apply("cluster-1", []byte(c.manifest))
			created = time.Now()
		} else if _, err := w.object("cluster-1", c.kind, c.namespace, c.name); err == nil {
			w.delete("cluster-1", c.kind, c.namespace, c.name)
		}
		w.until(fmt.Sprintf("edit %d of %s: what was planned is written", made, c.name), func(ctx context.Context) error {
			return w.differsFromPlan(ctx, c, planned, before)
		})
		n := 0
		for _, cluster := range planned.Clusters {
			n += len(cluster.Objects)
		}
		objects += n
		if n == 0 {
			none++
		}
		if slices.ContainsFunc(planned.Effects, func(e explain.Effect) bool { return e.Harm }) {
			harm++
		}
	}
	t.Logf("%d edits, of which %d change nothing that is written, and %d do harm: %d objects as planned", plannedEdits, none, harm, objects)
	assert.Greater(t, objects, plannedEdits/2)
	assert.Positive(t, harm)
}

// plan is the answer of the command to an edit.
func (w *environment) plan(c change) *explain.Planned {
	w.t.Helper()
	args := []string{"plan", "--kubeconfig", w.kubeconfig, "--context", "cluster-1", "-o", "json"}
	manifest := c.manifest
	if manifest != "" {
		args = append(args, "--field-manager", "meshctl-demo") // that of apply
	} else {
		args, manifest = append(args, "--delete"), fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {}\n",
			c.kind.GroupVersion(), kindsOf[c.kind.Resource], c.name, c.namespace)
	}
	file := filepath.Join(w.t.TempDir(), "edit.yaml")
	require.NoError(w.t, os.WriteFile(file, []byte(manifest), 0o600))
	streams, _, out, errs := cmdutil.TestStreams()
	code := cmd.Run(w.t.Context(), streams, append(args, "-f", file))
	require.Contains(w.t, []int{0, 2}, code, "%s%s", errs, manifest)
	planned := &explain.Planned{}
	require.NoError(w.t, json.Unmarshal(out.Bytes(), planned))
	assert.Equal(w.t, code == 0, planned.Empty(), out.String())
	return planned
}

var kindsOf = map[string]string{"trafficpolicies": "TrafficPolicy", "accesspolicies": "AccessPolicy", "virtualdestinations": "VirtualDestination"}

// generatedVersions are the versions of all objects that serve has generated, by Ref.
func (w *environment) generatedVersions() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for cluster, client := range w.clients {
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
			if !strings.HasSuffix(kind.Info().Group, ".istio.io") {
				continue
			}
			list, err := client.List(w.t.Context(), kind.GroupVersionResource(), "")
			require.NoError(w.t, err)
			for _, o := range list {
				if o.GetLabels()[snapshot.NetworkingOwnerLabel] == mgmt {
					ref := snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: o.GetNamespace(), Name: o.GetName()}
					out[ref.String()] = o.GetResourceVersion()
				}
			}
		}
	}
	return out
}

// differsFromPlan returns an error unless exactly what was planned has been written since before.
func (w *environment) differsFromPlan(ctx context.Context, c change, planned *explain.Planned, before map[string]string) error {
	if c.manifest != "" {
		o, err := w.clients["cluster-1"].Get(ctx, c.kind, c.namespace, c.name)
		if err != nil {
			return err
		}
		if field(o, "status", "observedGeneration") != o.GetGeneration() {
			return fmt.Errorf("%s has not been processed", c.name)
		}
	}
	now, want := w.generatedVersions(), maps.Clone(before)
	for _, cluster := range planned.Clusters {
		if cluster.Cluster == "" {
			continue // what was discovered does not follow from policies
		}
		for i := range cluster.Objects {
			o := &cluster.Objects[i]
			ref := o.Ref.String()
			version, has := now[ref]
			if o.Verb() == "removed" {
				if has {
					return fmt.Errorf("%s is still there", ref)
				}
				delete(want, ref)
				continue
			}
			if !has || version == before[ref] {
				return fmt.Errorf("%s has not been %s", ref, o.Verb())
			}
			want[ref] = version
			if err := w.differsFromText(ctx, o); err != nil {
				return err
			}
		}
	}
	if maps.Equal(now, want) {
		return nil
	}
	var wrong []string
	for ref := range now {
		if now[ref] != want[ref] {
			wrong = append(wrong, ref+" was written")
		}
	}
	for ref := range want {
		if now[ref] == "" {
			wrong = append(wrong, ref+" was deleted")
		}
	}
	return kube.Final(fmt.Errorf("not planned: %v", wrong))
}

// differsFromText returns an error unless an object is as the plan says.
func (w *environment) differsFromText(ctx context.Context, o *explain.ObjectComparison) error {
	want, err := kube.Decode([]byte(o.After))
	if err != nil {
		return err
	}
	is, err := w.clients[o.Ref.Cluster].Get(ctx, o.Ref.Kind.GroupVersionResource(), o.Ref.Namespace, o.Ref.Name)
	if err != nil {
		return err
	}
	if a, b := asJSON(field(want[0], "spec")), asJSON(field(is, "spec")); a != b {
		return fmt.Errorf("%s: planned %s, got %s", o.Ref, a, b)
	}
	for key, value := range want[0].GetAnnotations() {
		if is.GetAnnotations()[key] != value {
			return fmt.Errorf("%s: annotation %s: planned %s, got %s", o.Ref, key, value, is.GetAnnotations()[key])
		}
	}
	return nil
}
