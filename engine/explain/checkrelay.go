package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// relayCertificateSoon is how long before its end the certificate of an agent should have been renewed: those of the relay's own root last
// seven days, and are renewed each day.
const relayCertificateSoon = 48 * time.Hour

// relayChecks are the checks of a cluster that is reached through its agent, in the order of their causes: what follows from one that fails
// is skipped.
var relayChecks = []struct{ id, description string }{
	{"relay-reached", "its agent reaches meshctl serve"},
	{"relay-identity", "the agent is known to be that of the cluster"},
	{"relay-approved", "the cluster is registered and approved"},
	{"relay-version", "agent and meshctl serve speak the same protocol"},
	{"relay-resync", "meshctl serve has all that the agent reports"},
	{"relay-stuck", "what is sent between both is acknowledged"},
	{"cluster-usable", "it can be read and written"},
}

// isRelayed reports whether a cluster is reached through its agent.
func (k *checks) isRelayed(name string) bool {
	return slices.ContainsFunc(k.Clusters, func(c CheckedCluster) bool { return c.Name == name && c.Connection != nil })
}

// relayed checks a cluster that is reached through its agent, by what the server knows of the connection.
func (k *checks) relayed(found *CheckedCluster) CheckCategory {
	c := CheckCategory{Title: "Cluster " + found.Name}
	if k.leaving(&c, found) {
		return c
	}
	failed := -1
	at, reason := relayFailure(found)
	if at == 0 {
		reason.Hint = k.awayHint()
	}
	for i, check := range relayChecks {
		id := check.id + "/" + found.Name
		switch {
		case failed >= 0:
			c.skip(id, check.description, relayChecks[failed].id+"/"+found.Name)
		case i == at && found.Connection.State == multiclusterv1alpha1.ConnectionStateResync:
			c.warn(id, check.description, reason.What+prefixed("; for ", k.since(found.Connection)), cmp.Or(reason.Hint, "this takes seconds; if it does not end, see the log of `meshctl serve`"))
			failed = i
		case i == at:
			c.fail(id, check.description, reason.What, cmp.Or(reason.Hint, "see the log of `meshctl serve`"))
			failed = i
		default:
			c.ok(id, check.description, k.relayDetail(check.id, found))
		}
	}
	if failed >= 0 {
		if k.away == nil {
			k.away = map[string]string{}
		}
		k.away[found.Name] = relayChecks[failed].id + "/" + found.Name
	}
	k.relayWarnings(&c, found)
	k.take(&c, func(i *snapshot.Issue) bool {
		return i.Ref.Kind == snapshot.KubernetesCluster && i.Ref.Name == found.Name
	})
	return c
}

// leaving warns of a cluster that is deregistered through its agent. It reports whether the agent has gone, so that there is nothing else to
// check.
func (k *checks) leaving(c *CheckCategory, found *CheckedCluster) (left bool) {
	if found.Health != snapshot.HealthLeaving {
		return false
	}
	for i := range k.issues {
		if issue := &k.issues[i]; issue.Code == snapshot.ClusterLeaving && issue.Ref.Name == found.Name {
			k.taken[i] = true // it is said here
		}
	}
	var r snapshot.Reason
	if said := found.Reasons.Of(snapshot.ClusterLeaving); said != nil {
		r = *said
	}
	c.warn("cluster-leaving/"+found.Name, "the cluster stays registered", "it leaves: "+r.What, r.Hint)
	return r.Cause == snapshot.LeavingDone || r.Cause == snapshot.LeavingStays
}

// pending warns of an agent that waits for approval: nothing is wrong, and somebody has to decide.
func pending(found *CheckedCluster) CheckCategory {
	c := CheckCategory{Title: "Cluster " + found.Name}
	what, hint := found.Reasons.Advice()
	c.warn("relay-approved/"+found.Name, "the cluster is registered and approved", what, hint)
	return c
}

func (k *checks) since(c *multiclusterv1alpha1.Connection) string {
	if c.Since == nil {
		return ""
	}
	return duration.HumanDuration(max(k.Now.Sub(c.Since.Time), 0))
}

func (k *checks) relayDetail(id string, found *CheckedCluster) string {
	switch id {
	case "relay-reached":
		return prefixed("", k.since(found.Connection))
	case "relay-version":
		return found.Connection.AgentVersion
	}
	return ""
}

// relayFailure is which of relayChecks fails, and why; -1 if none does.
func relayFailure(found *CheckedCluster) (at int, why snapshot.Reason) {
	c := found.Connection
	if r := c.Reason; r != nil {
		why = snapshot.Reason{Code: snapshot.Code(r.Code), What: r.What, Hint: r.Hint}
	}
	switch c.State {
	case multiclusterv1alpha1.ConnectionStateRefused:
		switch why.Code {
		case snapshot.RelayNotApproved:
			at = 2
		case snapshot.RelayVersion:
			at = 3
		default:
			at = 1
		}
		if r := c.Refused; r != nil {
			why.What += prefixed("; the caller's address is ", r.Address)
		}
		return at, why
	case multiclusterv1alpha1.ConnectionStateResync:
		return 4, why
	case multiclusterv1alpha1.ConnectionStateStuck:
		return 5, why
	case multiclusterv1alpha1.ConnectionStateConnected:
		if found.NotServed {
			return 6, snapshot.Reason{What: found.ServeMessage}
		}
		return -1, why
	case multiclusterv1alpha1.ConnectionStateAwaited, multiclusterv1alpha1.ConnectionStateLost:
	}
	why.What = cmp.Or(why.What, found.Reasons.String(), "its agent is not connected")
	return 0, why
}

// CheckedRelay is the address at which agents find serve, as it was found from here.
type CheckedRelay struct {
	// Address is HOST:PORT; Untried says why it is not known.
	Address, Untried string
	// Failed is the code of the first step of a connection that fails, and What how; empty if none does.
	Failed snapshot.Code
	What   string
}

// awayHint is the next step where an agent does not connect.
func (k *checks) awayHint() string {
	const agent = "/readyz and the log of the agent say which step fails there, DNS, TCP or TLS, and what to do"
	r := k.Relay
	switch {
	case r == nil:
		return "others are connected, or nothing was tried from here: " + agent
	case r.Untried != "":
		return "not tried from here (" + r.Untried + "): " + agent
	}
	switch r.Failed {
	case "":
		return r.Address + " can be reached from here, and shows the name of the hub: " + agent
	case snapshot.RelayUnresolved:
		return "it cannot be reached from here either, " + r.What + ": make the name of " + r.Address + " known to DNS, or wait until the load balancer has done so"
	case snapshot.RelayUnreachable:
		return "it cannot be reached from here either, " + r.What + ": check that the pods of `meshctl serve` are ready, and the load balancer and firewalls before " + r.Address
	}
	return "from here, another server or something that ends TLS answers at " + r.Address + ", " + r.What + ": it must pass TLS on to `meshctl serve` unopened"
}

// relayWarnings are what does not fail yet.
func (k *checks) relayWarnings(c *CheckCategory, found *CheckedCluster) {
	n := found.Connection
	if end := n.CertificateExpires; end != nil {
		id, what := "relay-certificate/"+found.Name, "the certificate of its agent lasts"
		switch left := end.Sub(k.Now); {
		case left <= 0:
			c.fail(id, what, "it expired "+duration.HumanDuration(-left)+" ago", "an agent renews an expired certificate for 30 days by itself, once it reaches `meshctl serve`; afterwards, run `meshctl cluster invite "+found.Name+"`")
		case left < relayCertificateSoon:
			c.warn(id, what, "it expires in "+duration.HumanDuration(left)+", and should have been renewed", "see the log of the agent; a certificate of your own PKI is renewed by you")
		default:
			c.ok(id, what, "expires in "+duration.HumanDuration(left))
		}
	}
	if r := n.Refused; r != nil && n.State != multiclusterv1alpha1.ConnectionStateRefused {
		c.warn("relay-refused/"+found.Name, "nobody else says that it is the agent of the cluster", "a caller from "+r.Address+" was refused: "+r.What,
			cmp.Or(r.Hint, "find out who that is"))
	}
	if what, hint := skew(k.index.state.Input.Management.Server().Version, n.AgentVersion); what != "" {
		c.warn("relay-skew/"+found.Name, "the versions of agent and meshctl serve go together", what, hint)
	}
}

// skew says what is wrong with the versions of a hub and an agent: an agent may be of the same release, or of the one before. Versions that
// are none, as those of development, go with all.
func skew(hub, agent string) (what, hint string) {
	h, hubKnown := releaseOf(hub)
	a, agentKnown := releaseOf(agent)
	switch {
	case !hubKnown || !agentKnown || h == a:
		return "", ""
	case a[0] > h[0] || a[0] == h[0] && a[1] > h[1]:
		return fmt.Sprintf("the agent is %s, and meshctl serve is %s, which is older", agent, hub), "upgrade meshctl serve first: it speaks to agents of its own release and of the one before"
	case a[0] == h[0] && h[1]-a[1] <= 1:
		return "", ""
	}
	return fmt.Sprintf("the agent is %s, and meshctl serve is %s", agent, hub), "upgrade the agent: meshctl serve speaks to agents of its own release and of the one before"
}

// releaseOf is the major and the minor version of vMAJOR.MINOR.PATCH.
func releaseOf(version string) (release [2]int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 {
		return release, false
	}
	for i := range release {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return release, false
		}
		release[i] = n
	}
	return release, true
}
