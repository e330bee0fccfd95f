package serve

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changes are n VirtualServices written for a policy.
func changes(n int, what apply.Action, policy string) []apply.Change {
	var out []apply.Change
	for i := range n {
		c := apply.Change{
			Time: time.Now(), Action: what, Parents: []snapshot.Ref{{Kind: snapshot.TrafficPolicy, Namespace: "recorded", Name: policy}},
			Ref: snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "cluster-1", Namespace: "bookinfo", Name: fmt.Sprint("service-", i)},
		}
		if what == apply.Failed {
			c.Message = "denied"
		}
		out = append(out, c)
	}
	return out
}

// TestRecord: what was written is reported by Events that a real API server takes:
// one for a policy, a cluster and an action, however many objects it took.
func TestRecord(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for _, namespace := range []string{"recorded", "recording"} {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	policy := &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "recorded", Name: "patient", UID: "12345"}}
	state := &snapshot.State{Input: &snapshot.Input{Management: &snapshot.Management{TrafficPolicies: []*networkingv1.TrafficPolicy{policy}}}}
	r, err := newRecorder(Options{Management: config, Namespace: "recording", Log: slog.Default(), identity: "me"}, func() *snapshot.State { return state })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go r.run(ctx)

	r.record(apply.ChangeSet{Cluster: "cluster-1", Created: 90, Changes: changes(90, apply.Created, "patient")})
	r.record(apply.ChangeSet{Cluster: "cluster-1", Failed: 2, Changes: changes(2, apply.Failed, "patient")})
	r.record(apply.ChangeSet{Statuses: 1, Changes: []apply.Change{{Action: apply.StatusWritten, Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Name: "patient"}}}})
	r.record(apply.ChangeSet{Created: 1, Changes: []apply.Change{{Waited: 440 * time.Millisecond, Time: time.Now(), Action: apply.Created, Ref: snapshot.Ref{Kind: snapshot.Mesh, Namespace: "recording", Name: "mesh"}}}})

	r.changed(snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "recorded", Name: "patient"}, readiness{reason: "FieldConflict"}, "an older one sets it", time.Now())

	found := func(namespace string) map[string]eventsv1.Event {
		list, err := client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reportingController=meshctl"})
		require.NoError(t, err)
		out := map[string]eventsv1.Event{}
		for _, e := range list.Items {
			out[e.Action] = e
		}
		require.Len(t, out, len(list.Items), "one event for each action")
		return out
	}
	until(t, "events are recorded", func() bool { return len(found("recorded")) == 3 && len(found("recording")) == 1 })
	events := found("recorded")
	done := events["Applied"]
	assert.Equal(t, "cluster-1: 90 VirtualService created (bookinfo/service-0, bookinfo/service-1, bookinfo/service-2 and 87 more)", done.Note)
	assert.Equal(t, "TrafficPolicy", done.Regarding.Kind)
	assert.Equal(t, "networking.mesh.gloo.solo.io/v1", done.Regarding.APIVersion)
	assert.EqualValues(t, "12345", done.Regarding.UID)
	assert.Equal(t, "cluster-1", done.Related.Name)
	assert.Equal(t, "Normal", done.Type)
	assert.Equal(t, "Warning", events["Failed"].Type)
	assert.Contains(t, events["Failed"].Note, "2 VirtualService failed (bookinfo/service-0, bookinfo/service-1); VirtualService cluster-1/bookinfo/service-0: denied")
	worse := events["StateChanged"]
	assert.Equal(t, [3]string{"Warning", "FieldConflict", "an older one sets it"}, [3]string{worse.Type, worse.Reason, worse.Note})
	assert.EqualValues(t, "12345", worse.Regarding.UID)
	assert.Equal(t, "management cluster: Mesh recording/mesh created; waited 0.4 s for proxies", found("recording")["Applied"].Note)
}

// TestRecordBounded: the Events of many writes are bounded, and the log says that
// some were dropped.
func TestRecordBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := &recorder{namespace: "gloo-mesh", log: slog.New(slog.NewTextHandler(&log, nil)), wake: make(chan struct{}, 1)}
	for i := range 10 * maxPending {
		r.record(apply.ChangeSet{Cluster: "cluster-1", Created: 1, Changes: changes(1, apply.Created, fmt.Sprint("policy-", i))})
	}
	taken := 0
	for r.take() != nil {
		taken++
	}
	assert.Equal(t, maxPending, taken)
	assert.Contains(t, log.String(), fmt.Sprint("dropped=", 9*maxPending))
}
