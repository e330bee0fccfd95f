package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestConnectionOf: what the hub knows is written; and what it cannot know, because it has just started, stays.
func TestConnectionOf(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	on := func(minute int) *metav1.Time { return &metav1.Time{Time: at(minute)} }
	absent := snapshot.Reason{Code: snapshot.RelayAbsent, What: "away", Hint: "look"}
	written := func(r snapshot.Reason) *multiclusterv1alpha1.ClusterReason {
		return &multiclusterv1alpha1.ClusterReason{Code: string(r.Code), What: r.What, Hint: r.Hint}
	}
	connected := &multiclusterv1alpha1.Connection{
		Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateConnected, Since: on(1), AgentVersion: "v1", CertificateExpires: on(50), Objects: 7,
	}
	lost := &multiclusterv1alpha1.Connection{
		Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateLost, Since: on(2), Reason: written(absent), AgentVersion: "v1", CertificateExpires: on(50), Objects: 7,
	}
	started := &snapshot.Relay{Phase: snapshot.RelayAwaited, Since: at(9), Reason: snapshot.Reason{Code: snapshot.RelayAbsent, What: "not yet"}}
	cases := map[string]struct {
		stored *multiclusterv1alpha1.Connection
		relay  *snapshot.Relay
		want   *multiclusterv1alpha1.Connection
	}{
		"dialled directly":             {nil, nil, nil},
		"not through an agent anymore": {connected, nil, nil},
		"connected":                    {nil, &snapshot.Relay{Phase: snapshot.RelayConnected, Since: at(1), Version: "v1", CertificateEnds: at(50), Objects: 7}, connected},
		"never seen": {nil, started, &multiclusterv1alpha1.Connection{
			Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateAwaited, Since: on(9), Reason: written(started.Reason),
		}},
		"a hub that has just started knows no agent": {connected, started, &multiclusterv1alpha1.Connection{
			Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateLost, Since: on(9), Reason: written(started.Reason),
			AgentVersion: "v1", CertificateExpires: on(50), Objects: 7,
		}},
		"and does not know since when it is away": {lost, started, lost},
		"refused": {lost, &snapshot.Relay{
			Phase: snapshot.RelayRefused, Since: at(10), Reason: absent,
			Refused: &snapshot.RelayRefusal{Reason: absent, Address: "192.0.2.7", Since: at(10)},
		}, &multiclusterv1alpha1.Connection{
			Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateRefused, Since: on(10), Reason: written(absent),
			AgentVersion: "v1", CertificateExpires: on(50), Objects: 7,
			Refused: &multiclusterv1alpha1.RefusedCaller{ClusterReason: *written(absent), Address: "192.0.2.7", Since: on(10)},
		}},
		"behind in both directions": {nil, &snapshot.Relay{Phase: snapshot.RelayStuck, Since: at(4), UpSince: at(3), DownSince: at(4), Version: "v2"}, &multiclusterv1alpha1.Connection{
			Via: multiclusterv1alpha1.ViaRelay, State: multiclusterv1alpha1.ConnectionStateStuck, Since: on(4), AgentVersion: "v2", UpBehindSince: on(3), DownBehindSince: on(4),
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := connectionOf(c.stored, c.relay)
			assert.Equal(t, c.want, got)
			assert.Equal(t, got, connectionOf(got, c.relay), "what is written changes nothing")
		})
	}
}
