package traffic

import (
	"cmp"
	"fmt"
	"time"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// State says whether something has numbers.
type State string

// The states. NoTraffic: its proxies were read, and counted nothing. NoData: they were not, so that nothing is known.
const (
	HasNumbers State = "numbers"
	NoTraffic  State = "no traffic"
	NoData     State = "no data"
)

// Report is what was counted in a window of time, by one of the questions.
type Report struct {
	// At is when the report was made. Since is when counting began; what was before is not known.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Seconds are those that the numbers are of: the window, or less if counting began later.
	Seconds float64 `json:"seconds"`
	// Read is how many proxies were read lately, of those that there are.
	Read    int `json:"read"`
	Proxies int `json:"proxies"`
	// Folded is how many times the callers of a destination became one as there were too many.
	Folded uint64 `json:"folded,omitempty"`
	// Clusters are by name.
	Clusters []ClusterReport `json:"clusters,omitempty"`
	// Changed are the policies and VirtualMeshes that changed in the window, with since when they are in force as they are.
	Changed []Changed `json:"changed,omitempty"`
	Rows    []Row     `json:"rows"`
}

// ClusterReport is how the numbers of a cluster come in.
type ClusterReport struct {
	Cluster string `json:"cluster"`
	// Door is scrape, agent, push, prometheus or none.
	Door Door `json:"door"`
	// Read is how many proxies were read lately, of those that there are.
	Read    int `json:"read"`
	Proxies int `json:"proxies"`
	// Dropped is how many readings were lost on the way from the agent since this began, and Rejected how many were not taken. The next reading
	// of a proxy has what a lost one had.
	Dropped  uint64 `json:"dropped,omitempty"`
	Rejected uint64 `json:"rejected,omitempty"`
	// LogsDropped is how many entries of access logs the agent dropped since this began, as there were too many, and LogsRejected how many
	// were not taken. They are lost.
	LogsDropped  uint64 `json:"logsDropped,omitempty"`
	LogsRejected uint64 `json:"logsRejected,omitempty"`
	// Refused is how many connections and streams of proxies the agent refused since this began, and Refusal why the last one was, for people.
	Refused uint64 `json:"refused,omitempty"`
	Refusal string `json:"refusal,omitempty"`
	// Reason says why nothing is read, and Detail what else is known of that, for people.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Peer is a workload, or what it calls.
type Peer struct {
	// Ref is the Workload, Destination or VirtualDestination; empty for several callers, and for hosts that are none of them.
	Ref snapshot.Ref `json:"ref,omitzero"`
	// Name, Namespace and Cluster are those of the controller or the Service; the host of a VirtualDestination is its name.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
}

// Row is one destination, workload or edge.
type Row struct {
	// From is who calls; nil in a report by destination or workload.
	From *Peer `json:"from,omitempty"`
	// To is what is called, or the workload that gets the requests.
	To Peer `json:"to"`
	// Port and Subset are those of an edge; 0 and empty if the proxies do not name them.
	Port   uint32 `json:"port,omitempty"`
	Subset string `json:"subset,omitempty"`
	// Via is how an edge gets there: local, gateway, or direct to another cluster; empty if that is not known.
	Via   string `json:"via,omitempty"`
	State State  `json:"state"`
	// Reason says why there is no data, and Detail what else is known of that, for people.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Doors are those by which the numbers came in: scrape, agent, push or prometheus. None without numbers.
	Doors []Door `json:"doors,omitempty"`
	// Trend are the requests of each minute of the window, the oldest first; none where the window is shorter than one.
	Trend []uint64 `json:"trend,omitempty"`
	// FailedTrend are those of Trend that were answered with 5xx, or not at all; none where there are none.
	FailedTrend []uint64 `json:"failedTrend,omitempty"`
	// Sends is what is known of the requests that a workload sends, where that differs from State and Reason, which are of those that it
	// gets.
	Sends *Known `json:"sends,omitempty"`
	Numbers
}

// Known says whether there are numbers, as a Row does.
type Known struct {
	State  State  `json:"state"`
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Sending is what is known of the requests that the workload of a row sends. It does not say whether there were any.
func (r *Row) Sending() Known {
	if r.Sends != nil {
		return *r.Sends
	}
	return Known{r.State, r.Reason, r.Detail}
}

// Numbers are those of a window.
type Numbers struct {
	Requests uint64 `json:"requests"`
	// PerSecond is the rate of requests.
	PerSecond float64 `json:"perSecond"`
	// Success is the share of requests that were answered with less than 500, and not refused, in percent; none without requests.
	Success *float64 `json:"success,omitempty"`
	// P50, P95 and P99 are the upper ends of the buckets in which these shares of the answers lie, in milliseconds; 3600000 is more than
	// 30000. None without answers.
	P50 *float64 `json:"p50,omitempty"`
	P95 *float64 `json:"p95,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
	// Answers are requests by the class of their answer, none without one; Failures are those of connections and requests by their reason.
	Answers  map[string]uint64 `json:"answers,omitempty"`
	Failures map[string]uint64 `json:"failures,omitempty"`
	// Refused are requests that were answered with 403, or with PERMISSION_DENIED by gRPC: by access policies or by applications.
	Refused uint64 `json:"refused,omitempty"`
	// Retries are attempts after the first.
	Retries uint64 `json:"retries,omitempty"`
	// Connections are those that were opened; bytes are to and from what is called.
	Connections   uint64 `json:"connections,omitempty"`
	SentBytes     uint64 `json:"sentBytes,omitempty"`
	ReceivedBytes uint64 `json:"receivedBytes,omitempty"`
	// Handshakes are those of TLS that were completed, one for each connection that is encrypted; 0 may also be that the proxies do not count
	// them.
	Handshakes uint64 `json:"handshakes,omitempty"`
	// Allowed and Denied are requests that a workload gets, by what its access policies say; ShadowAllowed and ShadowDenied those by what the
	// ones would say that are audited.
	Allowed       uint64 `json:"allowed,omitempty"`
	Denied        uint64 `json:"denied,omitempty"`
	ShadowAllowed uint64 `json:"shadowAllowed,omitempty"`
	ShadowDenied  uint64 `json:"shadowDenied,omitempty"`
}

func numbersOf(v *Values, seconds float64) Numbers {
	n := Numbers{
		Requests: v.Requests(), Refused: v.Of(snapshot.Forbidden), Retries: v.Of(snapshot.Retried), Connections: v.Of(snapshot.Connected), Handshakes: v.Of(snapshot.Handshakes), SentBytes: v.Of(snapshot.SentBytes),
		ReceivedBytes: v.Of(snapshot.ReceivedBytes), Allowed: v.Of(snapshot.LetIn), Denied: v.Of(snapshot.Refused), ShadowDenied: v.Of(snapshot.ShadowRefused),
		ShadowAllowed: v.Of(snapshot.ShadowLetIn),
	}
	if seconds > 0 {
		n.PerSecond = float64(n.Requests) / seconds
	}
	if success, ok := v.Success(); ok {
		n.Success = &success
	}
	n.P50, n.P95, n.P99 = v.quantile(0.5), v.quantile(0.95), v.quantile(0.99)
	for m := range snapshot.Latency {
		switch count := v.Of(m); {
		case count == 0:
		case m.Requests():
			n.Answers = with(n.Answers, m, count)
		case m.Failure():
			n.Failures = with(n.Failures, m, count)
		}
	}
	return n
}

func with(counts map[string]uint64, m snapshot.Measure, n uint64) map[string]uint64 {
	if counts == nil {
		counts = map[string]uint64{}
	}
	counts[m.String()] = n
	return counts
}

// Context is what a report is made of.
type Context struct {
	State  *snapshot.State
	Survey *Survey
	// Status of the proxies; one that is missing was not read yet.
	Status map[Proxy]Status
	// Fresh is the time after which a reading counts as of now, and Sent that for a proxy that sends by itself, which may do so seldom.
	Fresh, Sent time.Time
	// Clusters are those of the report.
	Clusters []ClusterReport
	// Versions has since when policies are in force as they are.
	Versions Versions
}

// IsRead reports whether a proxy was read lately, by its status.
func (c *Context) IsRead(pod *Pod, s Status) bool {
	from := c.Fresh
	if pod.Door == Push {
		from = c.Sent
	}
	return s.Reason == "" && !s.Read.Before(from)
}

// coverage is whether the proxies of a workload are read.
type coverage struct {
	proxies, read int
	// reason and detail are of one that is not.
	reason Reason
	detail string
	// calls and serves are of those that are read.
	calls, serves side
}

// side is whether the proxies that are read count what pods send, or get.
type side struct {
	// uncounted is how many do not count requests, and partly how many do not count connections. unread is how many of the others may not.
	uncounted, partly, unread int
	// by is one of the objects because of which they do not, or else says why that is not known.
	by string
}

// add adds a proxy that is read and counts by the mesh's own metrics.
func (s *side) add(u *snapshot.UncountedSide, unread string) {
	switch {
	case u.Requests != (snapshot.Ref{}):
		s.uncounted++
		s.by = u.Requests.String()
	case u.Connections != (snapshot.Ref{}):
		s.partly++
		s.by = cmp.Or(s.by, u.Connections.String()+", of connections")
	case unread != "":
		s.unread++
		s.by = cmp.Or(s.by, unread)
	}
}

// note says what is not known of a side of which some proxies are read; none if all is.
func (c *coverage) note(s *side) (reason Reason, detail string) {
	switch {
	case c.read == 0:
		return "", ""
	case c.read < c.proxies:
		return c.reason, fmt.Sprintf("%d of %d proxies were read", c.read, c.proxies)
	case s.uncounted == c.read && s.uncounted > 0, s.partly == c.read && s.partly > 0:
		return Uncounted, s.by
	case s.uncounted+s.partly > 0:
		return Uncounted, fmt.Sprintf("%s, in %d of %d proxies", s.by, s.uncounted+s.partly, c.read)
	case s.unread > 0:
		return Unread, s.by
	}
	return "", ""
}

// without is why nothing is known of a side; empty if something is.
func (c *coverage) without(s *side) (reason Reason, detail string) {
	switch {
	case c.read == 0:
		return c.reason, c.detail
	case s.uncounted == c.read:
		return Uncounted, s.by
	}
	return "", ""
}

func (c *Context) coverage() map[snapshot.Ref]*coverage {
	out := map[snapshot.Ref]*coverage{}
	for ref, reason := range c.Survey.Without {
		out[ref] = &coverage{reason: reason}
	}
	for i := range c.Survey.Pods {
		pod := &c.Survey.Pods[i]
		ref := snapshot.RefOf(snapshot.Workload, pod.Workload)
		at := out[ref]
		if at == nil {
			at = &coverage{}
			out[ref] = at
		}
		at.proxies++
		status, known := c.Status[pod.Proxy]
		switch {
		case known && c.IsRead(pod, status):
			at.read++
			if status.Own {
				at.calls.add(&pod.Uncounted.Calls, pod.Uncounted.Unread)
				at.serves.add(&pod.Uncounted.Serves, pod.Uncounted.Unread)
			}
		case status.Reason == NotCounted && pod.Uncounted.Serves.Requests != (snapshot.Ref{}):
			at.reason, at.detail = Uncounted, pod.Uncounted.Serves.Requests.String()
		case known && status.Reason != "":
			at.reason, at.detail = status.Reason, status.Detail
		case at.reason == "":
			at.reason = NotYet
		}
	}
	return out
}

// Peers names workloads and what they call.
type Peers map[snapshot.Ref]Peer

// NewPeers names those of a Plan.
func NewPeers(plan *snapshot.Plan) Peers {
	out := Peers{}
	for _, w := range plan.Workloads {
		ref := snapshot.RefOf(snapshot.Workload, w)
		out[ref] = workloadPeer(ref, w)
	}
	for d := range plan.Destinations.All() {
		p := Peer{Ref: d.Ref, Name: d.Ref.Name}
		if s := d.Destination.Spec.KubeService; s != nil {
			p.Name, p.Namespace, p.Cluster = s.Ref.Name, s.Ref.Namespace, s.Ref.ClusterName
		}
		out[d.Ref] = p
	}
	for _, v := range plan.VirtualDestinations {
		out[v.Ref] = Peer{Ref: v.Ref, Name: v.Hostname, Namespace: v.Ref.Namespace, Cluster: v.Ref.Cluster}
	}
	return out
}

func workloadPeer(ref snapshot.Ref, w *discoveryv1.Workload) Peer {
	p := Peer{Ref: ref, Name: ref.Name}
	if k := w.Spec.Kubernetes; k != nil {
		p.Name, p.Namespace, p.Cluster = k.Controller.Name, k.Controller.Namespace, k.Controller.ClusterName
	}
	return p
}

// Of is the peer of a reference; one that is gone is known by its reference.
func (p Peers) Of(ref snapshot.Ref) Peer {
	if at, known := p[ref]; known {
		return at
	}
	return Peer{Ref: ref, Name: ref.Name, Namespace: ref.Namespace}
}
