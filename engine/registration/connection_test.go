package registration

import (
	"testing"

	"github.com/stretchr/testify/assert"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRelayed: the status of a cluster that only its agent reaches follows from what serve stored.
func TestRelayed(t *testing.T) {
	t.Parallel()
	because := &multiclusterv1alpha1.ClusterReason{Code: string(snapshot.RelayAbsent), What: "away", Hint: "look"}
	refused := &multiclusterv1alpha1.RefusedCaller{ClusterReason: multiclusterv1alpha1.ClusterReason{Code: string(snapshot.RelayIdentity), What: "revoked", Hint: "invite"}, Address: "192.0.2.7"}
	cases := map[string]struct {
		connection *multiclusterv1alpha1.Connection
		health     snapshot.Health
		code       snapshot.Code
		reason     string
	}{
		"nobody has said": {nil, snapshot.HealthUnknown, snapshot.RelayAbsent,
			"it is reached through its agent, and meshctl serve has not said yet whether that is connected; run `meshctl serve` with --relay-bind; or, if its Secret is missing, register it again with `meshctl cluster register`"},
		"connected": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected}, snapshot.Healthy, "", ""},
		"resync":    {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateResync, Reason: because}, snapshot.HealthDegraded, snapshot.RelayAbsent, "away; look"},
		"lost":      {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateLost, Reason: because}, snapshot.HealthUnreachable, snapshot.RelayAbsent, "away; look"},
		"refused":   {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateRefused, Reason: because, Refused: refused}, snapshot.HealthUnreachable, snapshot.RelayAbsent, "away; look"},
		"connected, and another one is refused": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, Refused: refused}, snapshot.HealthDegraded, snapshot.RelayIdentity,
			"a caller from 192.0.2.7, which says that it is its agent, was refused: revoked; invite"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := relayed(cluster.Registration{Name: "west", Domain: "west.example"}, c.connection)
			assert.Equal(t, c.health, got.Health)
			assert.Equal(t, c.reason, got.Reason)
			assert.NotNil(t, got.Connection)
			if c.code != "" {
				assert.Equal(t, c.code, got.Reasons[0].Code)
			}
			got.addServeReport(serveReport{serve: ServeReaches})
			assert.Equal(t, c.health, got.Health, "what serve says is all there is")
		})
	}
}
