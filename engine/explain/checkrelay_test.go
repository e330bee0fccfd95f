package explain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCheckOfARelay: the first cause is told, with the next step, and what follows from it is not made.
func TestCheckOfARelay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	why := func(code snapshot.Code, what, hint string) *multiclusterv1alpha1.ClusterReason {
		return &multiclusterv1alpha1.ClusterReason{Code: string(code), What: what, Hint: hint}
	}
	refused := func(r *multiclusterv1alpha1.ClusterReason) *multiclusterv1alpha1.Connection {
		return &multiclusterv1alpha1.Connection{
			State: multiclusterv1alpha1.ConnectionStateRefused, Reason: r, Refused: &multiclusterv1alpha1.RefusedCaller{ClusterReason: *r, Address: "192.0.2.7"},
		}
	}
	const away = "others are connected, or nothing was tried from here: /readyz and the log of the agent say which step fails there, DNS, TCP or TLS, and what to do"
	cases := map[string]struct {
		connection *multiclusterv1alpha1.Connection
		notServed  string
		// id of the check that is not ok, its result, message and hint, and how many are skipped because of it.
		id      string
		result  explain.CheckResult
		message string
		hint    string
		skipped int
	}{
		"connected": {connection: &multiclusterv1alpha1.Connection{
			State: multiclusterv1alpha1.ConnectionStateConnected, Since: at(time.Hour), AgentVersion: "v1.4.0", CertificateExpires: at(-6 * 24 * time.Hour),
		}},
		"never": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateAwaited, Reason: why(snapshot.RelayAbsent, "its agent has not connected yet", "look")}, "",
			"relay-reached", explain.CheckFailure, "its agent has not connected yet", away, 6},
		"lost": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateLost, Reason: why(snapshot.RelayAbsent, "its agent has no connection: silent", "look")}, "",
			"relay-reached", explain.CheckFailure, "its agent has no connection: silent", away, 6},
		"revoked": {refused(why(snapshot.RelayIdentity, "the certificate was revoked", "invite it")), "",
			"relay-identity", explain.CheckFailure, "the certificate was revoked; the caller's address is 192.0.2.7", "invite it", 5},
		"token": {refused(why(snapshot.RelayToken, "the token was used before", "invite it")), "",
			"relay-identity", explain.CheckFailure, "the token was used before; the caller's address is 192.0.2.7", "invite it", 5},
		"not approved": {refused(why(snapshot.RelayNotApproved, "nobody has approved it", "approve it")), "",
			"relay-approved", explain.CheckFailure, "nobody has approved it; the caller's address is 192.0.2.7", "approve it", 4},
		"too old": {refused(why(snapshot.RelayVersion, "versions", "upgrade")), "",
			"relay-version", explain.CheckFailure, "versions; the caller's address is 192.0.2.7", "upgrade", 3},
		"resync": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateResync, Since: at(2 * time.Minute), Reason: why(snapshot.RelayComparing, "it is compared", "")}, "",
			"relay-resync", explain.CheckWarning, "it is compared; for 2m", "this takes seconds; if it does not end, see the log of `meshctl serve`", 2},
		"stuck": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateStuck, Reason: why(snapshot.RelayBlocked, "not acknowledged", "see the network")}, "",
			"relay-stuck", explain.CheckFailure, "not acknowledged", "see the network", 1},
		"held": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected}, "nothing is deleted",
			"cluster-usable", explain.CheckFailure, "nothing is deleted", "see the log of `meshctl serve`", 0},
		"certificate ends": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, CertificateExpires: at(-5 * time.Hour)}, "",
			"relay-certificate", explain.CheckWarning, "it expires in 5h, and should have been renewed", "see the log of the agent; a certificate of your own PKI is renewed by you", 0},
		"certificate ended": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, CertificateExpires: at(5 * time.Hour)}, "",
			"relay-certificate", explain.CheckFailure, "it expired 5h ago", "an agent renews an expired certificate for 30 days by itself, once it reaches `meshctl serve`; afterwards, run `meshctl cluster invite west`", 0},
		"a clone": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, Refused: &multiclusterv1alpha1.RefusedCaller{ClusterReason: *why(snapshot.RelayIdentity, "another UID", ""), Address: "192.0.2.8"}}, "",
			"relay-refused", explain.CheckWarning, "a caller from 192.0.2.8 was refused: another UID", "find out who that is", 0},
		"two releases behind": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, AgentVersion: "v1.2.9"}, "",
			"relay-skew", explain.CheckWarning, "the agent is v1.2.9, and meshctl serve is v1.4.1", "upgrade the agent: meshctl serve speaks to agents of its own release and of the one before", 0},
		"one release behind": {connection: &multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, AgentVersion: "v1.3.0"}},
		"a release ahead": {&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, AgentVersion: "v1.5.0"}, "",
			"relay-skew", explain.CheckWarning, "the agent is v1.5.0, and meshctl serve is v1.4.1, which is older", "upgrade meshctl serve first: it speaks to agents of its own release and of the one before", 0},
		"of development": {connection: &multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected, AgentVersion: "(devel)"}},
	}
	in, err := load(t, "bookinfo").With("", &multiclusterv1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "west"},
		Status:     multiclusterv1alpha1.KubernetesClusterStatus{Server: &multiclusterv1alpha1.Server{Version: "v1.4.1"}},
	})
	require.NoError(t, err)
	state := engine.Translate(in)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := &explain.CheckFacts{Now: now, Clusters: []explain.CheckedCluster{{
				Name: "west", Health: snapshot.Healthy, Connection: c.connection, NotServed: c.notServed != "", ServeMessage: c.notServed,
			}}}
			checkup := explain.New(state).Checkup(facts)
			var bad []explain.Check
			skipped := 0
			for _, category := range checkup.Categories {
				if category.Title != "Cluster west" {
					continue
				}
				for _, check := range category.Checks {
					switch check.Result {
					case explain.CheckSkipped:
						skipped++
						assert.Equal(t, c.id+"/west", check.Because)
					case explain.CheckFailure, explain.CheckWarning:
						bad = append(bad, check)
					}
				}
			}
			assert.Equal(t, c.skipped, skipped)
			if c.id == "" {
				assert.Empty(t, bad)
				return
			}
			require.Len(t, bad, 1)
			assert.Equal(t, c.id+"/west", bad[0].ID)
			assert.Equal(t, c.result, bad[0].Result)
			assert.Equal(t, c.message, bad[0].Message)
			assert.Equal(t, c.hint, bad[0].Hint)
		})
	}
}

// TestWhatWasWrittenOverARelay: nobody but serve can compare that, and its agent's checks say whether serve knows it.
func TestWhatWasWrittenOverARelay(t *testing.T) {
	t.Parallel()
	state := engine.Translate(load(t, "bookinfo"))
	of := func(c *multiclusterv1alpha1.Connection) (checks []explain.Check) {
		index := explain.New(state)
		index.Observe(nil, true, &snapshot.Observed{Unread: map[string]string{"cluster-2": "its objects have not been listed yet"}})
		checkup := index.Checkup(&explain.CheckFacts{Clusters: []explain.CheckedCluster{{Name: "cluster-2", Health: snapshot.Healthy, Connection: c}}})
		for _, category := range checkup.Categories {
			for _, check := range category.Checks {
				if check.ID == "written/cluster-2" {
					checks = append(checks, check)
				}
			}
		}
		return checks
	}
	assert.Empty(t, of(&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateConnected}))
	lost := of(&multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateLost, Reason: &multiclusterv1alpha1.ClusterReason{What: "lost"}})
	require.Len(t, lost, 1)
	assert.Equal(t, explain.CheckSkipped, lost[0].Result)
	direct := of(nil)
	require.Len(t, direct, 1)
	assert.Equal(t, explain.CheckWarning, direct[0].Result)
}

// TestCheckOfAnAddressOfAgents: what fails from here as it does for the agents is told by its step.
func TestCheckOfAnAddressOfAgents(t *testing.T) {
	t.Parallel()
	state := engine.Translate(load(t, "bookinfo"))
	for name, c := range map[string]struct {
		relay explain.CheckedRelay
		hint  string
	}{
		"reached": {explain.CheckedRelay{Address: "hub:9900"}, "hub:9900 can be reached from here, and shows the name of the hub: /readyz and the log of the agent"},
		"unknown": {explain.CheckedRelay{Untried: "the Service is of type ClusterIP"}, "not tried from here (the Service is of type ClusterIP): /readyz and"},
		"DNS":     {explain.CheckedRelay{Address: "hub:9900", Failed: snapshot.RelayUnresolved, What: "DNS: no such host"}, "either, DNS: no such host: make the name of hub:9900 known to DNS"},
		"TCP":     {explain.CheckedRelay{Address: "hub:9900", Failed: snapshot.RelayUnreachable, What: "TCP: refused"}, "either, TCP: refused: check that the pods of `meshctl serve` are ready"},
		"TLS":     {explain.CheckedRelay{Address: "hub:9900", Failed: snapshot.RelayNotTrusted, What: "TLS: another name"}, "answers at hub:9900, TLS: another name: it must pass TLS on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := &explain.CheckFacts{Relay: &c.relay, Clusters: []explain.CheckedCluster{{
				Name: "west", Health: snapshot.Healthy, Connection: &multiclusterv1alpha1.Connection{State: multiclusterv1alpha1.ConnectionStateAwaited},
			}}}
			checkup := explain.New(state).Checkup(facts)
			i := slices.IndexFunc(checkup.Categories, func(c explain.CheckCategory) bool { return c.Title == "Cluster west" })
			require.GreaterOrEqual(t, i, 0)
			first := checkup.Categories[i].Checks[0]
			assert.Equal(t, "relay-reached/west", first.ID)
			assert.Equal(t, explain.CheckFailure, first.Result)
			assert.Contains(t, first.Hint, c.hint)
		})
	}
}
