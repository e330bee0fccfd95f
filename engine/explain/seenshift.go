package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Judgement says how what was seen is beside what is asked.
type Judgement string

const (
	// AsAsked: the shares are as asked, as far as chance allows.
	AsAsked Judgement = "as asked"
	// OffWeights: the shares are not as asked, and that is not by chance: see SeenShift.
	OffWeights Judgement = "off"
	// TooFew requests were counted to judge.
	TooFew Judgement = "too few"
	// Unused: there was no request.
	Unused Judgement = "no traffic"
	// NotCounted: no proxy of the callers was read, or they do not say which share each target got.
	NotCounted Judgement = "no data"
)

// SeenShift has the weights of one shift of a TrafficPolicy, on one Destination and for the callers of one mesh, and what they got.
//
// A target is off if all of this holds:
//   - at least 100 requests of the window were counted, in whole minutes since the policy is in force as it is;
//   - its share differs from what is asked by at least one percentage point;
//   - a share that is as far off, or farther, comes by chance less than once in 15,787 times: four standard deviations, by the exact binomial
//     test with two tails, as the choice of a proxy is independent for each request;
//   - the share of the last three minutes, or of as many more as it takes for 100 requests, is off to the same side, and comes by chance less
//     than once in 100 times. So what an edit has changed is not judged by the requests before it for longer than that.
type SeenShift struct {
	Destination snapshot.Ref `json:"destination"`
	Mesh        snapshot.Ref `json:"mesh"`
	// Match says in words which requests; all if there are several routes with the same weights.
	Match string `json:"match"`
	// Requests are those that were counted; Shared are those of callers that reach a target by another route, too, which cannot be told
	// apart; Unnamed are those of proxies that count by host and not by subset. Neither is among Requests.
	Requests uint64       `json:"requests"`
	Shared   uint64       `json:"shared,omitempty"`
	Unnamed  uint64       `json:"unnamed,omitempty"`
	Targets  []SeenTarget `json:"targets"`
	// Window is the time that the requests are of, such as "last 4m": that since the policy is in force as it is, if it changed lately.
	Window string `json:"window"`
}

// SeenTarget is a target of a shift, or where none should go.
type SeenTarget struct {
	Destination snapshot.Ref `json:"destination"`
	Subset      string       `json:"subset,omitempty"`
	// Elsewhere: it stands for all that is no target.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Asked and Seen are shares, in percent; Seen is 0 without requests.
	Asked    float64   `json:"asked"`
	Seen     float64   `json:"seen"`
	Requests uint64    `json:"requests"`
	Judged   Judgement `json:"judged"`
	// Chance is how probable it is that the share is as far off as it is, 0 to 1; 1 where nothing was counted.
	Chance float64 `json:"chance"`

	recent uint64
}

const (
	// unlikely is four standard deviations on both sides.
	unlikely = 6.334e-5
	// unlikelyOfLate is for the last minutes, of which there are fewer requests.
	unlikelyOfLate = 0.01
	// leastOff is the least difference that matters, in percentage points.
	leastOff = 1.0
	// lateMinutes are the last ones, if they have enough requests.
	lateMinutes = 3
)

// PolicyShift is a shift with its TrafficPolicy.
type PolicyShift struct {
	Policy snapshot.Ref
	SeenShift
}

// Shifts are all shifts of an Index with Evidence, ascending by their policy; none without.
func Shifts(x *Index) (out []PolicyShift) {
	if x.sight == nil {
		return nil
	}
	for _, policy := range sortedRefs(x.sight.shifts) {
		for _, s := range x.sight.shifts[policy] {
			out = append(out, PolicyShift{policy, s})
		}
	}
	return out
}

// Name is what the target is called.
func (t *SeenTarget) Name() string { return t.name() }

// name is what the target is called for people.
func (t *SeenTarget) name() string {
	switch {
	case t.Elsewhere:
		return "no target of it"
	case t.Subset != "":
		return t.Destination.Name + ", " + t.Subset
	}
	return t.Destination.Name
}

// off is the target that is off by the most; nil if none is.
func (s *SeenShift) off() (worst *SeenTarget) {
	for i := range s.Targets {
		t := &s.Targets[i]
		if t.Judged == OffWeights && (worst == nil || apart(t) > apart(worst)) {
			worst = t
		}
	}
	return worst
}

func apart(t *SeenTarget) float64 { return max(t.Seen-t.Asked, t.Asked-t.Seen) }

// goal is where requests end: a service, or a part of it.
type goal struct {
	destination snapshot.Ref
	subset      string
}

// meshGoal is a goal, of the callers of a mesh.
type meshGoal struct {
	mesh snapshot.Ref
	goal
}

// shift is the routes with the same targets of one policy, on one Destination and for one mesh.
type shift struct {
	on     *snapshot.DestinationPlan
	view   *snapshot.View
	policy snapshot.Ref
	routes []*snapshot.Route
}

// seenShifts compares all shifts of the Plan with what was counted, by their policy.
func seenShifts(x *Index) map[snapshot.Ref][]SeenShift {
	shifts := shiftsOf(x)
	if len(shifts) == 0 {
		return nil
	}
	ways := waysTo(x, shifts)
	out := map[snapshot.Ref][]SeenShift{}
	for i := range shifts {
		s := &shifts[i]
		seen := s.seen(x, ways)
		out[s.policy] = append(out[s.policy], seen)
	}
	return out
}

// shiftsOf are all shifts with several targets, or with one that is only a part of what is asked.
func shiftsOf(x *Index) (out []shift) {
	for d := range x.state.Plan.Destinations.All() {
		for _, v := range x.unwritten.viewsOf(d) {
			first := len(out)
			for _, r := range v.Routes {
				targets := r.Action.Targets
				if targets == nil || len(targets.Value) < 2 {
					continue
				}
				at := slices.IndexFunc(out[first:], func(s shift) bool {
					return s.policy == targets.Origin.Ref && slices.EqualFunc(s.routes[0].Action.Targets.Value, targets.Value, sameWeight)
				})
				if at < 0 {
					out = append(out, shift{on: d, view: v, policy: targets.Origin.Ref, routes: []*snapshot.Route{r}})
					continue
				}
				out[first+at].routes = append(out[first+at].routes, r)
			}
		}
	}
	return out
}

func sameWeight(a, b snapshot.Target) bool { return goalOf(a) == goalOf(b) && a.Weight == b.Weight }

func goalOf(t snapshot.Target) goal { return goal{t.Destination, t.Subset} }

// waysTo are the routes that lead to where shifts do, and to the services that these are on, of all services. A nil route stands for
// requests that no route takes.
func waysTo(x *Index, shifts []shift) map[meshGoal][]*snapshot.Route {
	ways := map[meshGoal][]*snapshot.Route{}
	for i := range shifts {
		s := &shifts[i]
		ways[meshGoal{s.view.Mesh.Ref, goal{s.on.Ref, ""}}] = nil
		for _, part := range s.view.Subsets {
			ways[meshGoal{s.view.Mesh.Ref, goal{s.on.Ref, part.Name}}] = nil
		}
		for _, t := range s.routes[0].Action.Targets.Value {
			ways[meshGoal{s.view.Mesh.Ref, goalOf(t)}] = nil
		}
	}
	add := func(mesh snapshot.Ref, to goal, r *snapshot.Route) {
		if at := (meshGoal{mesh, to}); hasKey(ways, at) {
			ways[at] = append(ways[at], r)
		}
	}
	routed := map[meshGoal]bool{}
	for d := range x.state.Plan.Destinations.All() {
		for _, v := range x.unwritten.viewsOf(d) {
			mesh := v.Mesh.Ref
			for _, r := range v.Routes {
				routed[meshGoal{mesh, goal{d.Ref, ""}}] = true
				if r.Action.Mirror != nil {
					add(mesh, goal{r.Action.Mirror.Value.Destination, ""}, r)
				}
				if r.Action.Targets == nil {
					add(mesh, goal{d.Ref, ""}, r)
					continue
				}
				for _, t := range r.Action.Targets.Value {
					add(mesh, goalOf(t), r)
				}
			}
		}
	}
	for at := range ways {
		if at.subset == "" && !routed[at] {
			ways[at] = append(ways[at], nil)
		}
	}
	return ways
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, has := m[key]
	return has
}

// seen counts what a shift got.
func (s *shift) seen(x *Index, ways map[meshGoal][]*snapshot.Route) SeenShift {
	targets := s.routes[0].Action.Targets.Value
	out := SeenShift{Destination: s.on.Ref, Mesh: s.view.Mesh.Ref, Match: matchText(s.routes[0].Match), Targets: []SeenTarget{}, Window: x.sight.window()}
	minutes, changed := x.sight.minutesOf(s.policy)
	if changed {
		out.Window = "last " + short(time.Duration(minutes)*time.Minute)
	}
	// counted are the requests of an edge that the policy sent as it is.
	counted := func(edge *traffic.Row) (uint64, []uint64) {
		if !changed {
			return edge.Requests, edge.Trend
		}
		trend := edge.Trend[max(len(edge.Trend)-minutes, 0):]
		return total(trend), trend
	}
	if len(s.routes) > 1 {
		out.Match = "all"
	}
	weights := shares{}
	for _, t := range targets {
		weights.add(t.Weight)
	}
	index, trends := map[goal]int{}, [][]uint64{}
	for _, t := range targets {
		if at, again := index[goalOf(t)]; again { // the same place on two ports
			out.Targets[at].Asked += weights.of(t.Weight)
			continue
		}
		index[goalOf(t)] = len(out.Targets)
		out.Targets = append(out.Targets, SeenTarget{Destination: t.Destination, Subset: t.Subset, Asked: weights.of(t.Weight), Chance: 1, Judged: TooFew})
		trends = append(trends, nil)
	}
	elsewhere := SeenTarget{Destination: s.on.Ref, Elsewhere: true, Chance: 1, Judged: TooFew}
	var elseTrend []uint64
	for _, edge := range s.edges(x, index) {
		to := goal{edge.To.Ref, edge.Subset}
		at, isTarget := index[to]
		requests, trend := counted(edge)
		switch {
		case edge.Port == 0 && edge.Subset == "" && s.hasSubsets(edge.To.Ref):
			out.Unnamed += requests
		case s.alone(x, ways, index, edge.From.Ref) != nil:
			out.Shared += requests
		case isTarget:
			out.Targets[at].Requests += requests
			trends[at] = addTrend(trends[at], trend)
		case s.leadsElsewhere(x, ways, edge.From.Ref, to):
			// by another route
		default:
			elsewhere.Requests += requests
			elseTrend = addTrend(elseTrend, trend)
		}
	}
	if elsewhere.Requests > 0 {
		out.Targets, trends = append(out.Targets, elsewhere), append(trends, elseTrend)
	}
	out.judge(trends, s.counted(x))
	if changed && out.Requests == 0 {
		for i := range out.Targets {
			if out.Targets[i].Judged == Unused {
				out.Targets[i].Judged = TooFew // there may be requests, which are not of the policy as it is
			}
		}
	}
	return out
}

// edges are those of callers of the shift, to its targets and to the service that it is on.
func (s *shift) edges(x *Index, targets map[goal]int) (out []*traffic.Row) {
	places := []snapshot.Ref{s.on.Ref}
	for to := range targets {
		places = append(places, to.destination)
	}
	slices.SortFunc(places, snapshot.Ref.Compare)
	for _, place := range slices.Compact(places) {
		for _, edge := range x.sight.edgesTo[place] {
			w := x.workloads[edge.From.Ref]
			if w == nil || x.meshOf(w) != s.view.Mesh || isGateway(w) || modeOf(w).IsAmbient() {
				continue // others take no route of policies
			}
			if slices.ContainsFunc(s.routes, func(r *snapshot.Route) bool { return takes(r.Match, w) }) {
				out = append(out, edge)
			}
		}
	}
	return out
}

func (s *shift) hasSubsets(of snapshot.Ref) bool {
	return slices.ContainsFunc(s.routes[0].Action.Targets.Value, func(t snapshot.Target) bool { return t.Destination == of && t.Subset != "" })
}

// alone is a target that requests of a caller reach by another way, too; nil if there is none.
func (s *shift) alone(x *Index, ways map[meshGoal][]*snapshot.Route, targets map[goal]int, caller snapshot.Ref) *goal {
	for to := range targets {
		for _, r := range ways[meshGoal{s.view.Mesh.Ref, to}] {
			if r == nil || !slices.Contains(s.routes, r) && takes(r.Match, x.workloads[caller]) {
				return &to
			}
		}
	}
	return nil
}

// leadsElsewhere reports whether another route explains an edge that leads to no target of the shift.
func (s *shift) leadsElsewhere(x *Index, ways map[meshGoal][]*snapshot.Route, caller snapshot.Ref, to goal) bool {
	at := meshGoal{s.view.Mesh.Ref, to}
	if to.destination != s.on.Ref { // another part of a service that is a target, or the service as a whole
		return true
	}
	return slices.ContainsFunc(ways[at], func(r *snapshot.Route) bool { return r == nil || takes(r.Match, x.workloads[caller]) })
}

// total is the sum of a trend.
func total(trend []uint64) (n uint64) {
	for _, of := range trend {
		n += of
	}
	return n
}

func addTrend(a, b []uint64) []uint64 {
	if a == nil {
		return slices.Clone(b)
	}
	for i := range min(len(a), len(b)) {
		a[i] += b[i]
	}
	return a
}

// counted reports whether the proxies of any caller are read.
func (s *shift) counted(x *Index) bool {
	for ref, row := range x.sight.served {
		if w := x.workloads[ref]; w != nil && row.State != traffic.NoData && x.meshOf(w) == s.view.Mesh && slices.ContainsFunc(s.routes, func(r *snapshot.Route) bool { return takes(r.Match, w) }) {
			return true
		}
	}
	return false
}

// judge judges the targets, whose requests of each minute are trends.
func (s *SeenShift) judge(trends [][]uint64, counted bool) {
	for i := range s.Targets {
		s.Requests += s.Targets[i].Requests
	}
	late := uint64(0)
	minutes := 0
	for _, trend := range trends {
		minutes = max(minutes, len(trend))
	}
	for back := 1; back <= minutes && (back <= lateMinutes || late < fewestRequests); back++ {
		for i, trend := range trends {
			if len(trend) >= back {
				n := trend[len(trend)-back]
				late += n
				s.Targets[i].recent += n
			}
		}
	}
	for i := range s.Targets {
		t := &s.Targets[i]
		t.Seen, t.Chance = percent(t.Requests, s.Requests), chance(t.Requests, s.Requests, t.Asked/100)
		switch {
		case s.Requests == 0 && (s.Unnamed > 0 || !counted):
			t.Judged = NotCounted
		case s.Requests == 0:
			t.Judged = Unused
		case s.Requests < fewestRequests:
			t.Judged = TooFew
		case apart(t) < leastOff || t.Chance >= unlikely || !t.offOfLate(late):
			t.Judged = AsAsked
		default:
			t.Judged = OffWeights
		}
	}
}

// offOfLate reports whether the target is off in the last minutes, too, and to the same side.
func (t *SeenTarget) offOfLate(requests uint64) bool {
	share := percent(t.recent, requests)
	return requests > 0 && cmp.Compare(share, t.Asked) == cmp.Compare(t.Seen, t.Asked) && chance(t.recent, requests, t.Asked/100) < unlikelyOfLate
}
