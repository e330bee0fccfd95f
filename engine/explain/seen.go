package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Seen is what proxies have counted lately of what an object is about. It is nil where nobody counts by nature, as for a folder.
type Seen struct {
	// State says whether there are numbers. Why says in a sentence why there are none, or not all; else it is empty.
	State traffic.State `json:"state"`
	Why   string        `json:"why,omitempty"`
	// Window is the time that the numbers are of, such as "last 15m".
	Window string `json:"window"`
	SeenCount
	// Failing says, of a caller and a service, that a third or more of the last minutes' requests failed, and not by chance; else it is empty.
	Failing string `json:"failing,omitempty"`
	// Denied are the requests that the proxies of the pods refused by access policies.
	Denied uint64 `json:"denied,omitempty"`
	// Calls are who calls what. Those that are refused most come first.
	Calls []SeenCall `json:"calls,omitempty"`
	// More is how many calls are left out.
	More int `json:"moreCalls,omitempty"`
	// Shifts are those of a TrafficPolicy.
	Shifts []SeenShift `json:"shifts,omitempty"`
	// Settings are the timeouts and retries that a TrafficPolicy asks for, and what was counted of them.
	Settings []SeenSetting `json:"settings,omitempty"`
	// Failover is that of a VirtualDestination.
	Failover *SeenFailover `json:"failover,omitempty"`
}

// SeenCount are requests, with how many of them failed (were answered with 5xx, or not at all), and were refused (with 403).
type SeenCount struct {
	Requests uint64 `json:"requests"`
	Failed   uint64 `json:"failed,omitempty"`
	Refused  uint64 `json:"refused,omitempty"`
	// Trend are the requests of each minute, the oldest first.
	Trend []uint64 `json:"trend,omitempty"`
}

// SeenCall is what one workload sends to one service.
type SeenCall struct {
	// From is a Workload; zero stands for several. To is what it calls; zero stands for hosts that are not known.
	From snapshot.Ref `json:"from,omitzero"`
	To   snapshot.Ref `json:"to,omitzero"`
	// Via is how requests get there: local, gateway, or direct to another cluster; empty if that is not known.
	Via string `json:"via,omitempty"`
	SeenCount
	// By are the AccessPolicies that let the caller in or, if Denied, keep it out.
	By     []snapshot.Ref `json:"by,omitempty"`
	Denied bool           `json:"denied,omitempty"`
	// Unnamed: the caller is refused, and no policy names it.
	Unnamed bool `json:"unnamed,omitempty"`
}

// SeenSetting is a setting of a policy on one Destination, and what was counted there.
type SeenSetting struct {
	Destination snapshot.Ref `json:"destination"`
	// Name is timeout or retries; Asked is what the policy asks for.
	Name  string `json:"name"`
	Asked string `json:"asked"`
	// Requests were counted, of which Times ran into the timeout, or are how often requests were sent again; nil if the proxies do not count
	// that.
	Requests uint64  `json:"requests"`
	Times    *uint64 `json:"times,omitempty"`
}

// mostCalls bounds the calls of a Seen.
const mostCalls = 100

// unseen is a Seen without numbers because nothing was reported; nil if something was, or if nobody counts by nature.
func (s *sight) unseen() *Seen {
	if s != nil && s.Report == nil {
		return &Seen{State: traffic.NoData, Why: s.Unknown, Window: s.window()}
	}
	return nil
}

// add adds an edge, or what something gets.
func (c *SeenCount) add(row *traffic.Row) {
	c.Requests += row.Requests
	c.Failed += failed(row)
	c.Refused += row.Refused
	c.Trend = addTrend(c.Trend, row.Trend)
}

// text is "1,400 requests, 12 refused, 3 failed".
func (c *SeenCount) text() string {
	text := counting(c.Requests, "request")
	if c.Refused > 0 {
		text += ", " + grouped(c.Refused) + " refused"
	}
	if c.Failed > 0 {
		text += ", " + grouped(c.Failed) + " failed"
	}
	return text
}

// whyText says why there is no data about a row, or not all.
func whyText(row *traffic.Row) string { return reasonText(row.Reason, row.Detail) }

func reasonText(reason traffic.Reason, detail string) string {
	if reason == "" {
		return detail
	}
	return reason.String() + prefixed(": ", detail)
}

// sending says whether it is known what a workload sends, and if not, or not all of it, why.
func (s *sight) sending(from snapshot.Ref) (known bool, why string) {
	row := s.served[from]
	if row == nil {
		return false, "meshctl serve does not count it yet"
	}
	sent := row.Sending()
	return sent.State != traffic.NoData, reasonText(sent.Reason, sent.Detail)
}

// stateOf is what was seen of Destinations and VirtualDestinations: that of the first one with numbers, else of the first one without data.
func (s *sight) stateOf(refs ...snapshot.Ref) (state traffic.State, why string) {
	state = traffic.NoTraffic
	if len(refs) == 0 {
		return state, ""
	}
	for _, ref := range refs {
		row := s.called[ref]
		switch {
		case row == nil && state == traffic.NoTraffic:
			state, why = traffic.NoData, "meshctl serve does not count it yet"
		case row == nil:
		case row.State == traffic.HasNumbers:
			return row.State, whyText(row)
		case row.State == traffic.NoData || why == "":
			state, why = row.State, whyText(row)
		}
	}
	return state, why
}

// seenDestination is what was seen of a service or VirtualDestination, with its callers; nil if nobody counts.
func seenDestination(x *Index, ref snapshot.Ref) *Seen {
	s := x.sight
	if s == nil || s.Report == nil {
		return s.unseen()
	}
	out := &Seen{Window: s.window()}
	out.State, out.Why = s.stateOf(ref)
	out.addCalls(x, ref)
	out.bound()
	return out
}

// addCalls adds the calls to a service.
func (o *Seen) addCalls(x *Index, ref snapshot.Ref) {
	d := x.destinations[ref]
	var gate *gate
	if d != nil && d.Mesh != nil && len(x.sight.edgesTo[ref]) > 0 {
		gate = x.gateTo(d)
	}
	at := map[snapshot.Ref]int{}
	for _, edge := range x.sight.edgesTo[ref] {
		o.SeenCount.add(edge)
		i, known := at[edge.From.Ref]
		if !known {
			i = len(o.Calls)
			at[edge.From.Ref] = i
			call := SeenCall{From: edge.From.Ref, To: ref, Via: edge.Via}
			if w := x.workloads[edge.From.Ref]; w != nil && gate != nil {
				may, by := gate.admits(w)
				call.By, call.Denied, call.Unnamed = by, !may && len(by) > 0, !may && len(by) == 0 && gate.d.Open() == snapshot.OpenNot
			}
			o.Calls = append(o.Calls, call)
		}
		o.Calls[i].add(edge)
	}
	for i := range o.Calls {
		o.Calls[i].Unnamed = o.Calls[i].Unnamed && o.Calls[i].Refused > 0
	}
	if d != nil {
		for _, row := range x.sight.denying {
			if w := x.workloads[row.To.Ref]; w != nil && w.Spec.Kubernetes != nil && backs(w.Spec.Kubernetes, d) {
				o.Denied += row.Denied
			}
		}
	}
}

// bound orders the calls, and leaves out those beyond the most.
func (o *Seen) bound() {
	slices.SortStableFunc(o.Calls, func(a, b SeenCall) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Requests, a.Requests), a.From.Compare(b.From), a.To.Compare(b.To))
	})
	if more := len(o.Calls) - mostCalls; more > 0 {
		o.Calls, o.More = o.Calls[:mostCalls:mostCalls], more
	}
}

// seenWorkload is what a workload gets, and what it calls.
func seenWorkload(x *Index, ref snapshot.Ref) *Seen {
	s := x.sight
	if s == nil || s.Report == nil {
		return s.unseen()
	}
	out := &Seen{Window: s.window(), State: traffic.NoData, Why: "meshctl serve does not count it yet"}
	if row := s.served[ref]; row != nil {
		out.State, out.Why, out.Denied = row.State, whyText(row), row.Denied
		if sent := row.Sending(); row.Sends != nil && sent.Reason != "" {
			if out.Why != "" {
				out.Why += "; "
			}
			out.Why += "of what it sends: " + reasonText(sent.Reason, sent.Detail)
		}
		out.SeenCount.add(row)
	}
	at := map[snapshot.Ref]int{}
	for _, edge := range s.edgesFrom[ref] {
		i, known := at[edge.To.Ref]
		if !known {
			i = len(out.Calls)
			at[edge.To.Ref] = i
			out.Calls = append(out.Calls, SeenCall{From: ref, To: edge.To.Ref, Via: edge.Via})
		}
		out.Calls[i].add(edge)
	}
	out.bound()
	return out
}

// seenPolicy is what was seen of a TrafficPolicy or an AccessPolicy.
func seenPolicy(x *Index, p *snapshot.PolicyPlan) *Seen {
	s := x.sight
	if s == nil || s.Report == nil {
		return s.unseen()
	}
	out := &Seen{Window: s.window(), Shifts: s.shifts[p.Ref]}
	var on []snapshot.Ref
	for i := range p.Verdicts {
		if p.Verdicts[i].Accepted {
			on = append(on, p.Verdicts[i].Destination)
		}
	}
	if p.Ref.Kind == snapshot.TrafficPolicy {
		on = append(on, shiftedTo(out.Shifts)...)
	}
	slices.SortFunc(on, snapshot.Ref.Compare)
	on = slices.Compact(on)
	out.State, out.Why = s.stateOf(on...)
	if len(on) == 0 {
		out.Why = "it is in force on no service"
	}
	for _, ref := range on {
		if p.Ref.Kind == snapshot.AccessPolicy {
			out.addCalls(x, ref)
			continue
		}
		for _, edge := range s.edgesTo[ref] {
			out.SeenCount.add(edge)
		}
	}
	if p.Ref.Kind == snapshot.TrafficPolicy {
		out.Settings = seenSettings(x, p, out.Shifts)
	}
	out.bound()
	return out
}

// shiftedTo are the services to which shifts send requests.
func shiftedTo(shifts []SeenShift) (out []snapshot.Ref) {
	for i := range shifts {
		for _, t := range shifts[i].Targets {
			if !t.Elsewhere && t.Destination != (snapshot.Ref{}) {
				out = append(out, t.Destination)
			}
		}
	}
	return out
}

// seenSettings are the timeouts and retries of a policy, with what callers counted of the services that they hold for.
func seenSettings(x *Index, p *snapshot.PolicyPlan, shifts []SeenShift) (out []SeenSetting) {
	for i := range p.Verdicts {
		d := x.destinations[p.Verdicts[i].Destination]
		if d == nil || !p.Verdicts[i].Accepted {
			continue
		}
		places := []snapshot.Ref{d.Ref}
		for j := range shifts {
			if shifts[j].Destination == d.Ref {
				places = append(places, shiftedTo(shifts[j:j+1])...)
			}
		}
		slices.SortFunc(places, snapshot.Ref.Compare)
		counts, timeouts, again, counted := SeenCount{}, uint64(0), uint64(0), false
		for _, place := range slices.Compact(places) {
			for _, edge := range x.sight.edgesTo[place] {
				counts.add(edge)
				timeouts += edge.Failures[snapshot.TimedOut.String()]
				again += edge.Retries
				counted = counted || edge.Port != 0 // those by host alone have no retries
			}
		}
		for _, setting := range askedOn(x, d, p.Ref) {
			setting.Destination, setting.Requests = d.Ref, counts.Requests
			switch {
			case counts.Requests == 0:
			case setting.Name == timeoutSetting:
				setting.Times = &timeouts
			case counted:
				setting.Times = &again
			}
			out = append(out, setting)
		}
	}
	return out
}

// The names of settings that are counted.
const (
	timeoutSetting = "timeout"
	retriesSetting = "retries"
)

// askedOn are the timeouts and retries that a policy sets on a service, each once.
func askedOn(x *Index, d *snapshot.DestinationPlan, policy snapshot.Ref) (out []SeenSetting) {
	for _, v := range x.unwritten.viewsOf(d) {
		for _, r := range v.Routes {
			for _, s := range actionSettings(r) {
				if s.Origin.Ref != policy || s.Name != timeoutSetting && s.Name != retriesSetting {
					continue
				}
				if asked := (SeenSetting{Name: s.Name, Asked: s.Value}); !slices.Contains(out, asked) {
					out = append(out, asked)
				}
			}
		}
	}
	return out
}

// timesText says how often a setting had an effect.
func (s *SeenSetting) timesText() string {
	switch {
	case s.Requests == 0:
		return "no traffic"
	case s.Times == nil:
		return "not counted"
	case s.Name == timeoutSetting:
		return grouped(*s.Times) + " of " + counting(s.Requests, "request") + " timed out"
	}
	return counting(*s.Times, "retry") + " for " + counting(s.Requests, "request")
}

// byText says who lets a caller in, or why nobody does.
func (c *SeenCall) byText() string {
	names := make([]string, len(c.By))
	for i, ref := range c.By {
		names[i] = shortName(ref)
	}
	switch {
	case c.Unnamed:
		return "no policy names it"
	case c.Denied:
		return "denied by " + firstOf(names)
	}
	return firstOf(names)
}

// cells are the last ones of a row of calls: requests, the share that succeeded, and how many were refused.
func (c *SeenCount) cells() []string {
	return []string{grouped(c.Requests), shareText(c.Requests-min(c.Failed+c.Refused, c.Requests), c.Requests), groupedOrNone(c.Refused)}
}

func groupedOrNone(n uint64) string {
	if n == 0 {
		return ""
	}
	return grouped(n)
}

// nameOf is the name of an object; words stands for none.
func nameOf(ref snapshot.Ref, words string) string { return cmp.Or(strings.TrimSpace(ref.Name), words) }
