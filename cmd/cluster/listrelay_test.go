package cluster

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/cmd/schematest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRelayTable: clusters with an agent are told by its connection, and others beside them by what was found from here.
func TestRelayTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	connection := func(state multiclusterv1alpha1.ConnectionState, since time.Duration) *multiclusterv1alpha1.Connection {
		return &multiclusterv1alpha1.Connection{
			Via: multiclusterv1alpha1.ViaRelay, State: state, Since: ago(since), AgentVersion: "v1.4.0", CertificateExpires: ago(-6 * 24 * time.Hour), Objects: 1234,
		}
	}
	behind := connection(multiclusterv1alpha1.ConnectionStateStuck, 2*time.Minute)
	behind.UpBehindSince, behind.DownBehindSince = ago(3*time.Minute), ago(2*time.Minute)
	ended := connection(multiclusterv1alpha1.ConnectionStateLost, time.Hour)
	ended.CertificateExpires = ago(time.Minute)
	expires := now.Add(17 * time.Hour)
	list := []registration.ClusterStatus{
		{Name: "cluster-1", Health: snapshot.Healthy, Expires: &expires, Meshes: []registration.MeshStatus{{Type: "istio", Version: "1.31.1"}}},
		{Name: "cluster-2", Health: snapshot.Healthy, Connection: connection(multiclusterv1alpha1.ConnectionStateConnected, 25*time.Hour)},
		{Name: "cluster-3", Health: snapshot.HealthDegraded, Connection: behind, Reason: "what is sent to the hub is not acknowledged"},
		{Name: "cluster-4", Health: snapshot.HealthUnreachable, Connection: ended, Reason: "its agent has no connection"},
		{Name: "cluster-5", Health: snapshot.HealthUnknown, Connection: &multiclusterv1alpha1.Connection{Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateAwaited}},
		{Name: "cluster-6", Health: snapshot.HealthLeftover, Reason: "deregistered"},
		{Name: "cluster-8", Health: snapshot.HealthLeaving, Since: &ago(4 * time.Minute).Time, Connection: connection(multiclusterv1alpha1.ConnectionStateConnected, 25*time.Hour), Reason: "12 objects are deleted"},
		{Name: "cluster-7", Health: snapshot.HealthPending, Reason: "its agent waits for approval"},
	}
	var out bytes.Buffer
	require.NoError(t, relayTable(list, now).Print(&out))
	assert.Equal(t, `NAME        VIA      STATE       SINCE   LAG-UP   LAG-DOWN   OBJECTS   AGENT    CERTIFICATE   MESHES         PROBLEM
cluster-1   direct   healthy     -       -        -          -         -        17h           istio 1.31.1   -
cluster-2   relay    connected   25h     <30s     <30s       1234      v1.4.0   6d            -              -
cluster-3   relay    stuck       2m      3m       2m         1234      v1.4.0   6d            -              what is sent to the hub is not acknowledged
cluster-4   relay    lost        60m     -        -          1234      v1.4.0   expired       -              its agent has no connection
cluster-5   relay    awaited     -       -        -          -         -        -             -              -
cluster-6   -        leftover    -       -        -          -         -        -             -              deregistered
cluster-8   relay    leaving     4m      <30s     <30s       1234      v1.4.0   6d            -              12 objects are deleted
cluster-7   relay    pending     -       -        -          -         -        -             -              its agent waits for approval
`, out.String())
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	schematest.Valid(t, "cluster list", string(raw))
}
