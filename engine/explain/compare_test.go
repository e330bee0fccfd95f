package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	ref := func(cluster, name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.VirtualService, Cluster: cluster, Namespace: "bookinfo", Name: name}
	}
	object := func(cluster, name, host string) *snapshot.Object {
		return &snapshot.Object{Ref: ref(cluster, name), Content: &snapshot.Content{Spec: map[string]any{"host": host}}}
	}
	issue := func(s snapshot.Severity, message string) snapshot.Issue {
		return snapshot.Issue{Severity: s, Message: message}
	}
	before := &snapshot.Output{
		Parts:  snapshot.ListOf([]*snapshot.Part{{Objects: []*snapshot.Object{object("a", "gone", "x"), object("a", "same", "x"), object("b", "other", "x")}}}),
		Issues: []snapshot.Issue{issue(snapshot.Error, "fixed"), issue(snapshot.Warning, "stays")},
	}
	after := &snapshot.Output{
		Parts:  snapshot.ListOf([]*snapshot.Part{{Objects: []*snapshot.Object{object("a", "same", "x"), object("b", "new", "x"), object("b", "other", "y")}}}),
		Issues: []snapshot.Issue{issue(snapshot.Error, "appears"), issue(snapshot.Warning, "stays")},
	}
	c, err := explain.Compare(before, after)
	require.NoError(t, err)
	var got []string
	for _, cluster := range c.Clusters {
		for i := range cluster.Objects {
			got = append(got, cluster.Objects[i].Verb()+" "+cluster.Cluster+"/"+cluster.Objects[i].Ref.Name)
		}
	}
	assert.Equal(t, []string{"removed a/gone", "created b/new", "changed b/other"}, got)
	assert.Equal(t, []snapshot.Issue{issue(snapshot.Error, "appears")}, c.NewIssues)
	assert.Equal(t, []snapshot.Issue{issue(snapshot.Error, "fixed")}, c.FixedIssues)
	text := c.Text()
	assert.Contains(t, text, "# will be removed: VirtualService a/bookinfo/gone\n")
	assert.Contains(t, text, "host: x\n")
	assert.Contains(t, text, "\n-  host: x\n+  host: \"y\"\n")

	c, err = explain.Compare(before, before)
	require.NoError(t, err)
	assert.Empty(t, c.Clusters)
	assert.Empty(t, c.NewIssues)
}

// TestCompareText: what marks an object as generated does not show in what differs.
func TestCompareText(t *testing.T) {
	t.Parallel()
	policy := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: name}
	}
	output := func(host, by string) *snapshot.Output {
		o := &snapshot.Object{
			Ref: snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "a", Namespace: "bookinfo", Name: "reviews"},
			Content: &snapshot.Content{
				Labels:      map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.PlaneLabel: "id", "user": "own"},
				Annotations: map[string]string{snapshot.ParentsAnnotation: by},
				Spec:        map[string]any{"host": host}, Parents: []snapshot.Ref{policy(by)},
			},
		}
		return &snapshot.Output{Parts: snapshot.ListOf([]*snapshot.Part{{Objects: []*snapshot.Object{o}}})}
	}
	none := &snapshot.Output{}
	const head = "VirtualService a/bookinfo/reviews (by TrafficPolicy gloo-mesh/%s)\n"
	const object = "?apiVersion: networking.istio.io/v1\n?kind: VirtualService\n?metadata:\n?  labels:\n?    user: own\n" +
		"?  name: reviews\n?  namespace: bookinfo\n?spec:\n?  host: x\n"
	for name, c := range map[string]struct {
		before, after *snapshot.Output
		want          string
	}{
		"created":         {none, output("x", "p"), "# will be created: " + fmt.Sprintf(head, "p") + strings.ReplaceAll(object, "?", "+")},
		"removed":         {output("x", "p"), none, "# will be removed: " + fmt.Sprintf(head, "p") + strings.ReplaceAll(object, "?", "-")},
		"another policy":  {output("x", "p"), output("x", "q"), "# will be changed: " + fmt.Sprintf(head, "q") + "# only the names of the objects from which it follows, in its annotation\n"},
		"another content": {output("x", "p"), output("z", "q"), "# will be changed: " + fmt.Sprintf(head, "q") + "@@ -6,4 +6,4 @@\n   name: reviews\n   namespace: bookinfo\n spec:\n-  host: x\n+  host: z\n"},
	} {
		compared, err := explain.Compare(c.before, c.after)
		require.NoError(t, err)
		assert.Equal(t, c.want, compared.Text(), name)
		require.Len(t, compared.Clusters, 1)
		for _, whole := range []string{compared.Clusters[0].Objects[0].Before, compared.Clusters[0].Objects[0].After} {
			if whole != "" {
				assert.Contains(t, whole, snapshot.PlaneLabel, "%s: the object as it is written", name)
			}
		}
	}
}
