package serve

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// storeOn is a store of the timeline on a server, and its log.
func storeOn(server *fake.Clientset) (*changeStore, *bytes.Buffer) {
	var log bytes.Buffer
	return &changeStore{maps: server.CoreV1().ConfigMaps("plane"), namespace: "plane", log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

// stored is the timeline on a server.
func stored(t *testing.T, server *fake.Clientset) snapshot.Changes {
	t.Helper()
	record, err := server.CoreV1().ConfigMaps("plane").Get(t.Context(), snapshot.ChangesRecord, metav1.GetOptions{})
	require.NoError(t, err)
	list, err := snapshot.ParseChanges(record.Data[snapshot.ChangesKey])
	require.NoError(t, err)
	return list
}

func leading(at time.Time, who string) []snapshot.Change {
	return []snapshot.Change{{Time: at, Kind: snapshot.ChangeLeader, What: who}}
}

// TestChangeStore: a process goes on with what the one before it has recorded; what is damaged is told, and begins anew.
func TestChangeStore(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	server := fake.NewClientset()
	first, _ := storeOn(server)
	first.add(t.Context(), leading(now, "one"))
	second, _ := storeOn(server)
	second.add(t.Context(), leading(now.Add(time.Second), "two"))
	list := stored(t, server)
	require.Len(t, list, 2)
	assert.Equal(t, "one", list[0].What)

	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plane", Name: snapshot.ChangesRecord}, Data: map[string]string{snapshot.ChangesKey: "{"}}
	server = fake.NewClientset(broken)
	third, log := storeOn(server)
	third.add(t.Context(), leading(now, "three"))
	list = stored(t, server)
	require.Len(t, list, 2)
	kinds := []snapshot.ChangeKind{list[0].Kind, list[1].Kind}
	assert.ElementsMatch(t, []snapshot.ChangeKind{snapshot.ChangeRecord, snapshot.ChangeLeader}, kinds)
	assert.Contains(t, log.String(), "the record begins anew")
}

// TestChangeStoreWaits: what may not be written is kept, told once, and written when that is possible.
func TestChangeStoreWaits(t *testing.T) {
	t.Parallel()
	server := fake.NewClientset()
	refused := true
	server.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, snapshot.ChangesRecord, nil)
	})
	store, log := storeOn(server)
	store.add(t.Context(), leading(time.Now(), "one"))
	store.add(t.Context(), leading(time.Now(), "two"))
	store.add(t.Context(), nil)
	assert.Equal(t, 1, strings.Count(log.String(), "cannot be recorded"))
	refused = false
	store.add(t.Context(), nil)
	assert.Len(t, stored(t, server), 2)
}

// TestRevertedShowsNoSecret: of what somebody wrote by hand, only values are told that can be no secret.
func TestRevertedShowsNoSecret(t *testing.T) {
	t.Parallel()
	for path, tt := range map[string]struct{ value, told string }{
		"spec.http[].route[].weight":                     {"1/15", "1/15"},
		"spec.http[0].timeout":                           {"3s", "3s"},
		"spec.http[0].route[0].destination.host":         {"evil.example.com", `"evil.example.com"`},
		"spec.http[0].headers.request.set.authorization": {"Bearer abc", "(not shown)"},
		"spec.http[0].headers.request.set.host":          {"Bearer abc", "(not shown)"},
		"spec.configPatches[0].patch.value":              {`{"password":"x"}`, "(not shown)"},
		"metadata.annotations[example.com/token]":        {"s3cr3t", "(not shown)"},
		"spec.trafficPolicy.tls.subjectAltNames[0]":      {"spiffe://x", "(not shown)"},
		"spec.trafficPolicy.tls.mode":                    {"DISABLE", `"DISABLE"`},
		"spec.http[0].match[0].headers.x-api-key.exact":  {"k", "(not shown)"},
		"spec.http[0].fault.abort.percentage.value":      {"", "(none)"},
		"spec.pluginConfig.name":                         {`{"a":"b"}`, "(not shown)"},
	} {
		c := revertedChange(&apply.Change{Reverted: &snapshot.Drift{State: snapshot.DriftChanged, Fields: []snapshot.DriftField{{Path: path, InForce: tt.value, Wanted: "5"}}}})
		assert.Contains(t, c.What, path+" "+tt.told+" → 5", path)
	}
}

// TestTimelineOfWrites: what was put back and what was refused is told, what was written is not.
func TestTimelineOfWrites(t *testing.T) {
	t.Parallel()
	line := &timeline{wake: make(chan struct{}, 1)}
	service := snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "cluster-1", Namespace: "bookinfo", Name: "reviews"}
	line.record(apply.ChangeSet{Cluster: "cluster-1", Changes: []apply.Change{
		{Action: apply.Configured, Ref: service},
		{Action: apply.Configured, Ref: service, Reverted: &snapshot.Drift{State: snapshot.DriftChanged, By: "kubectl-patch", Fields: []snapshot.DriftField{
			{Path: "spec.http[0].route[].weight", InForce: "1/15/10", Wanted: "75/15/10"},
		}}},
		{Action: apply.Created, Ref: service, Reverted: &snapshot.Drift{State: snapshot.DriftMissing}},
		{Action: apply.Failed, Ref: service, Message: "denied by a webhook"},
	}})
	var texts []string
	for _, c := range line.take() {
		texts = append(texts, c.Text())
	}
	assert.Equal(t, []string{
		"VirtualService cluster-1/bookinfo/reviews was changed by somebody else, and was put back: spec.http[0].route[].weight 1/15/10 → 75/15/10, because VirtualService cluster-1/bookinfo/reviews was edited by kubectl-patch",
		"VirtualService cluster-1/bookinfo/reviews was deleted by somebody else, and was created again",
		"VirtualService cluster-1/bookinfo/reviews cannot be written: denied by a webhook",
	}, texts)
	assert.Empty(t, line.take())
}

// TestTimelineOfCredentials: a credential that is renewed is told, the first one is not.
func TestTimelineOfCredentials(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	credential := cluster.CredentialStatus{Cluster: "cluster-1", Lifetime: cluster.Lifetime{Issued: at, Expires: at.Add(time.Hour)}}
	line := &timeline{wake: make(chan struct{}, 1), issued: map[string]time.Time{}, credentials: func() []cluster.CredentialStatus { return []cluster.CredentialStatus{credential} }}
	line.renewals()
	assert.Empty(t, line.take())
	credential.Issued, credential.Expires = at.Add(time.Minute), at.Add(2*time.Hour)
	line.renewals()
	line.renewals()
	told := line.take()
	require.Len(t, told, 1)
	assert.Equal(t, "cluster cluster-1 has a new credential, valid until 2026-01-02 05:04:05 UTC", told[0].Text())
}

// TestTimelineOfEdits: who edited is asked for what exists.
func TestTimelineOfEdits(t *testing.T) {
	t.Parallel()
	policy := func(name string, generation int64) *networkingv1.TrafficPolicy {
		return &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "plane", Name: name, Generation: generation}}
	}
	input := func(policies ...*networkingv1.TrafficPolicy) *snapshot.Input {
		return &snapshot.Input{Management: &snapshot.Management{Namespace: "plane", TrafficPolicies: policies}}
	}
	line := &timeline{editors: func(context.Context, snapshot.Ref) (manager, operation string) { return "kubectl", "Update" }}
	edits := line.edits(t.Context(), input(policy("a", 1), policy("b", 1), policy("c", 1)), input(policy("a", 2), policy("b", 1), policy("d", 1)))
	require.Len(t, edits, 3)
	assert.Equal(t, "was edited by kubectl", edits[0].What+" by "+edits[0].By)
	assert.Equal(t, "was deleted", edits[1].What)
	assert.Empty(t, edits[1].By)
	assert.Equal(t, "was created", edits[2].What)
}
