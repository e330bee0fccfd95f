package snapshot

import (
	"fmt"
	"time"
)

// Relay is how the agent of a cluster is connected to the hub, as far as statuses tell it. What changes all the time is not in it: it is
// another pointer only if something changed that matters to a reader. Times are in whole seconds.
type Relay struct {
	Phase RelayPhase
	// Since is when the phase began; zero if that is not known.
	Since time.Time
	// Reason says why, if the phase is not RelayConnected.
	Reason Reason
	// Version is that of the agent, and CertificateEnds when its certificate does; empty if it was never here.
	Version         string
	CertificateEnds time.Time
	// UpSince is since when the hub does not have all that the agent reports, and DownSince since when the agent does not have all that the
	// hub sends; zero if that is not for long.
	UpSince, DownSince time.Time
	// Objects is how many the hub has of the cluster; counted when something else of this changed.
	Objects int
	// Refused is the last caller that was refused as the agent of the cluster; nil if none was, or if the agent came afterwards.
	Refused *RelayRefusal
	// Verified is the last comparison that somebody asked for; nil if nobody has since the hub began.
	Verified *RelayVerified
}

// RelayPhase is how far the connection of an agent is.
type RelayPhase string

const (
	// RelayAwaited: the agent has not connected.
	RelayAwaited RelayPhase = "AWAITED"
	// RelayRefused: the agent has no connection, and somebody was refused who says that it is the agent.
	RelayRefused RelayPhase = "REFUSED"
	// RelayLost: the agent was connected, and is not any more.
	RelayLost RelayPhase = "LOST"
	// RelayResync: the agent is connected, and what the hub has of the cluster is still compared with it.
	RelayResync RelayPhase = "RESYNC"
	// RelayStuck: the agent is connected, and what is sent in one direction is not acknowledged.
	RelayStuck RelayPhase = "STUCK"
	// RelayConnected: the agent is connected, and both sides have everything.
	RelayConnected RelayPhase = "CONNECTED"
)

// RelayLag is from when on a connection that does not move counts as stuck, and statuses tell that something waits.
const RelayLag = 30 * time.Second

// RelayRefusal is a caller that was refused. Whose agent it is, is what the caller says.
type RelayRefusal struct {
	Reason
	// Address is the caller's, as the hub sees it.
	Address string
	// Since is when it was first refused for this reason.
	Since time.Time
}

// Equal reports whether two say the same to a reader.
func (r *Relay) Equal(o *Relay) bool {
	if r == nil || o == nil {
		return r == o
	}
	a, b := *r, *o
	if (a.Refused == nil) != (b.Refused == nil) || a.Refused != nil && *a.Refused != *b.Refused {
		return false
	}
	a.Refused, b.Refused, a.Objects, b.Objects = nil, nil, 0, 0
	return a == b
}

// Codes of reasons around the relay. They are in the order in which the causes are looked at: one before another explains that.
const (
	// RelayUnresolved: the name of the hub has no address.
	RelayUnresolved Code = "RelayUnresolved"
	// RelayUnreachable: nothing takes connections at the address of the hub.
	RelayUnreachable Code = "RelayUnreachable"
	// RelayNotTrusted: one side does not accept the certificate of the other.
	RelayNotTrusted Code = "RelayNotTrusted"
	// RelayIdentity: the caller is not known to be the agent of the cluster, or not any more.
	RelayIdentity Code = "RelayIdentity"
	// RelayToken: the caller got no certificate for its token.
	RelayToken Code = "RelayToken"
	// RelayNotRenewed: the agent got no new certificate.
	RelayNotRenewed Code = "RelayNotRenewed"
	// RelayNotApproved: no cluster of this name is registered to be reached through its agent, or nobody has approved it.
	RelayNotApproved Code = "RelayNotApproved"
	// RelayVersion: agent and hub have no version of the protocol in common.
	RelayVersion Code = "RelayVersion"
	// RelayAbsent: the agent has not connected, or not for a time.
	RelayAbsent Code = "RelayAbsent"
	// RelayComparing: what the hub has is still compared.
	RelayComparing Code = "RelayComparing"
	// RelayBlocked: what is sent is not acknowledged.
	RelayBlocked Code = "RelayBlocked"
)

// RelayStuckHint is the next step where what is sent between the hub and an agent does not arrive.
const RelayStuckHint = "see the logs of the agent and of `meshctl serve`, and whether the network between both passes data in both directions"

// RelayStandstill is why a connection is stuck that is made again and again: how many times it ended within a time because what was sent
// was not taken, and the object that waited first the last time, as its kind and name.
func RelayStandstill(what string, times int, within time.Duration, at string) Reason {
	what = fmt.Sprintf("%s: %d connections ended for that within %.0f minutes", what, times, within.Minutes())
	if at != "" {
		what += ", the last one at " + at
	}
	return Reason{Code: RelayBlocked, What: what, Hint: RelayStuckHint}
}

// RelayVerified is the result of a comparison of the objects of a cluster at the hub, at its agent and in the cluster itself.
type RelayVerified struct {
	// Request is what the comparison was asked for with.
	Request string
	Time    time.Time
	// Kinds and Objects are how many were compared. Unlisted is how many kinds could not be listed in the cluster: of these, only the hub and
	// the agent are compared.
	Kinds, Objects, Unlisted int
	Differences              []RelayDifference
	// Error is why nothing could be compared.
	Error string
}

// RelayDifference is a kind that differs.
type RelayDifference struct {
	// Kind is GROUP/VERSION/KIND. With "written:" before it, it is of what the hub writes.
	Kind string
	// Hub, Agent and Cluster are how many objects each has. Listed: the cluster was asked.
	Hub, Agent, Cluster int
	Listed              bool
	// Objects are the first ones, and More is how many others there are.
	Objects []RelayDiffering
	More    int
}

// RelayDiffering is an object that differs: the beginnings of hashes; empty where there is none.
type RelayDiffering struct{ Name, Hub, Agent, Cluster string }
