package apply

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// surroundings is a view with fixed answers.
type surroundings struct {
	useOf                                  use
	unknown, unread, braked, lets, pending bool
	obstacles                              []obstacle
	message                                string
	wide                                   *content
}

func (s surroundings) use([]name) use          { return s.useOf }
func (s surroundings) provided(of []name) bool { return len(of) == 0 || !s.unknown }
func (s surroundings) reading() bool           { return s.unread }
func (s surroundings) widened() *content       { return s.wide }
func (s surroundings) outage() string          { return s.message }
func (s surroundings) held() bool              { return s.braked }
func (s surroundings) opens() bool             { return s.lets }
func (s surroundings) denied() bool            { return s.pending }
func (s surroundings) obstacle(of []name) (obstacle, bool) {
	if len(of) == 0 || len(s.obstacles) == 0 {
		return obstacle{}, false
	}
	return s.obstacles[0], true
}

// withSpec is a content as it is known of an object that was written: with a spec, which no case looks at.
func withSpec(c *content) *content {
	with := *c.Content
	with.Spec = map[string]any{}
	return &content{Content: &with}
}

// decisionCase says what follows from facts.
type decisionCase struct {
	with  []func(*facts)
	verb  verb
	phase Phase
	again time.Time
	code  snapshot.Code
}

// decisionCases each change one thing about a route of which an earlier version is written.
func decisionCases(t *testing.T, now time.Time) map[string]decisionCase {
	t.Helper()
	in := func(d time.Duration) time.Time { return now.Add(d) }
	digest, err := routeTo("v3").get()
	require.NoError(t, err)
	rule, narrow, wide := ruleWith("v1", "v3"), ruleWith("v1"), ruleWith("v1", "v2", "v3")
	narrowed, err := narrow.get()
	require.NoError(t, err)
	unwritable := &content{Content: &snapshot.Content{Spec: math.Inf(1)}}
	state := &wantedStatus{Status: &snapshot.Status{Value: map[string]any{"state": "ACCEPTED"}}}
	stateDigest, err := state.get()
	require.NoError(t, err)
	around := func(s surroundings) func(*facts) { return func(f *facts) { f.view = s } }
	gone := func(f *facts) { f.content, f.garbage, f.withdrawal = nil, true, &withdrawal{since: now} }
	narrowing := func(s surroundings) func(*facts) {
		return func(f *facts) { f.content, f.current, f.view = narrow, withSpec(rule), s }
	}
	settled := func(f *facts) { f.live.Spec = digest }

	return map[string]decisionCase{
		"differs":      {verb: writeObject},
		"as wanted":    {with: []func(*facts){settled}, phase: AsWanted},
		"stored alike": {with: []func(*facts){func(f *facts) { f.history.settled = pair{digest, f.live.Spec} }}, phase: AsWanted},
		"unmarked":     {with: []func(*facts){settled, func(f *facts) { f.live.Owner = mirror.Unmarked }}, verb: writeObject},
		"absent":       {with: []func(*facts){func(f *facts) { f.live = nil }}, verb: writeObject},
		"not writable": {with: []func(*facts){func(f *facts) { f.place.writable = false }}, phase: Unreachable},
		"not listed":   {with: []func(*facts){func(f *facts) { f.place.kind.Listed = false }}, phase: Listing},
		"no such kind": {with: []func(*facts){func(f *facts) { f.place.kind.Absent = true }}, phase: Failing, code: snapshot.WriteFailed},
		"not to list":  {with: []func(*facts){func(f *facts) { f.place.kind.Refused = "forbidden" }}, phase: Failing, code: snapshot.WriteFailed},
		"foreign":      {with: []func(*facts){func(f *facts) { f.live.Owner = mirror.Foreign }}, phase: Failing, code: snapshot.ForeignObject},
		"of another cluster": {with: []func(*facts){func(f *facts) { f.live.Source, f.current, f.after = "cluster-2", nil, readObject }},
			phase: Failing, code: snapshot.ForeignObject},
		"strayed":                        {with: []func(*facts){func(f *facts) { f.live.Source, f.stray, f.current, f.after = "cluster-2", true, nil, readObject }}, verb: writeObject},
		"no JSON":                        {with: []func(*facts){func(f *facts) { f.content = unwritable }}, phase: Failing, code: snapshot.WriteFailed},
		"of a process before":            {with: []func(*facts){func(f *facts) { f.current = nil }}, verb: readObject},
		"of a request without an answer": {with: []func(*facts){func(f *facts) { f.unsure = true }}, verb: readObject},
		"read while not wanted":          {with: []func(*facts){func(f *facts) { f.current = routeTo("v1") }}, verb: readObject},
		"that cannot be read":            {with: []func(*facts){func(f *facts) { f.current, f.after = nil, readObject }}, verb: writeObject},
		"proxies do not know":            {with: []func(*facts){around(surroundings{unknown: true})}, phase: NeedsProxies, again: in(proxiesPause)},
		"patience ends":                  {with: []func(*facts){around(surroundings{unknown: true}), func(f *facts) { f.history.since = in(-15 * time.Second) }}, verb: writeObject},
		"what it needs fails":            {with: []func(*facts){around(surroundings{obstacles: []obstacle{{access: access{able: true}}}})}, phase: Obstructed, again: in(clusterPause), code: snapshot.WriteFailed},
		"its cluster is silent":          {with: []func(*facts){around(surroundings{obstacles: []obstacle{{access: access{silent: true}}}})}, phase: Obstructed, again: in(clusterPause), code: snapshot.ClusterAwaited},
		"its cluster connects":           {with: []func(*facts){around(surroundings{obstacles: []obstacle{{}}})}, phase: NeedsCluster, again: in(proxiesPause)},
		"outage":                         {with: []func(*facts){around(surroundings{message: "webhook"})}, phase: Outage, code: snapshot.WriteFailed},
		"refused":                        {with: []func(*facts){func(f *facts) { f.history.refusal = &refusal{verb: writeObject, tries: 3, due: in(4 * time.Second)} }}, phase: Refused, again: in(4 * time.Second)},
		"refused before":                 {with: []func(*facts){func(f *facts) { f.history.refusal = &refusal{verb: writeObject, tries: 3, due: now} }}, verb: writeObject},
		"another verb refused":           {with: []func(*facts){func(f *facts) { f.history.refusal = &refusal{verb: writeStatus, tries: 3, due: in(time.Second)} }}, verb: writeObject},
		"conflict":                       {with: []func(*facts){func(f *facts) { f.history.outdated = &outdated{version: 7, until: in(time.Second)} }}, phase: Conflict, again: in(time.Second)},
		"a later version":                {with: []func(*facts){func(f *facts) { f.history.outdated = &outdated{version: 6, until: in(time.Second)} }}, verb: writeObject},
		"repair":                         {with: []func(*facts){func(f *facts) { f.history.wrote, f.history.rewrites, f.asked = now, 1, false }}, phase: Disputed, again: in(repairFirst)},
		"edit":                           {with: []func(*facts){func(f *facts) { f.history.wrote, f.history.rewrites = now, 1 }}, verb: writeObject},
		"slow":                           {with: []func(*facts){func(f *facts) { f.history.wrote, f.history.effort = now, &effort{spent: time.Second, changed: now} }}, phase: Resting, again: in(time.Second)},
		"narrowed while used":            {with: []func(*facts){narrowing(surroundings{useOf: coming, wide: wide})}, verb: writeObject},
		"narrowed and unused":            {with: []func(*facts){narrowing(surroundings{wide: wide})}, verb: writeObject},
		"wide as wanted": {with: []func(*facts){narrowing(surroundings{useOf: coming, wide: rule}), func(f *facts) { f.live.Spec, _ = rule.get() }},
			phase: UsedByProxies, again: in(proxiesPause)},
		"wide because of a held route": {with: []func(*facts){narrowing(surroundings{useOf: held, wide: rule}), func(f *facts) { f.live.Spec, _ = rule.get() }},
			phase: Kept, again: in(clusterPause)},
		"wide after patience": {with: []func(*facts){narrowing(surroundings{useOf: coming, wide: wide}), func(f *facts) { f.history.since = in(-time.Minute) }}, verb: writeObject},
		"wide until proxies forget": {with: []func(*facts){narrowing(surroundings{useOf: leaving, wide: rule}), func(f *facts) { f.live.Spec, _ = rule.get(); f.history.since = in(-time.Minute) }},
			phase: UsedByProxies, again: in(proxiesPause)},
		"narrow as wanted": {with: []func(*facts){narrowing(surroundings{useOf: coming, wide: nil}), func(f *facts) { f.live.Spec = narrowed }}, phase: AsWanted},

		"status":                  {with: []func(*facts){settled, func(f *facts) { f.status = state }}, verb: writeStatus},
		"status as wanted":        {with: []func(*facts){settled, func(f *facts) { f.status, f.live.Status = state, stateDigest }}, phase: AsWanted},
		"status of what is going": {with: []func(*facts){settled, func(f *facts) { f.status, f.live.Going = state, true }}, phase: AsWanted},
		"status that is no JSON": {with: []func(*facts){settled, func(f *facts) { f.status = &wantedStatus{Status: &snapshot.Status{Value: math.Inf(1)}} }},
			phase: Failing, code: snapshot.WriteFailed},

		"no longer wanted":     {with: []func(*facts){gone}, phase: Withdrawing, again: in(time.Minute), verb: none},
		"explained":            {with: []func(*facts){gone, func(f *facts) { f.withdrawal.explained = true }}, verb: deleteObject},
		"explained, but opens": {with: []func(*facts){gone, around(surroundings{lets: true}), func(f *facts) { f.withdrawal.explained = true }}, phase: Withdrawing, again: in(5 * time.Second)},
		"grace has ended":      {with: []func(*facts){gone, func(f *facts) { f.withdrawal.since = in(-time.Minute) }}, verb: deleteObject},
		"held":                 {with: []func(*facts){gone, around(surroundings{braked: true}), func(f *facts) { f.withdrawal.since = in(-time.Hour) }}, phase: Held},
		"a denial goes first":  {with: []func(*facts){gone, around(surroundings{pending: true}), func(f *facts) { f.withdrawal.explained = true }}, phase: Withdrawing, again: in(proxiesPause)},
		"a route goes at once": {with: []func(*facts){gone, func(f *facts) { f.id.Kind = snapshot.VirtualService }}, verb: deleteObject},
		"what is used stays": {with: []func(*facts){gone, around(surroundings{useOf: coming}), func(f *facts) { f.current, f.withdrawal.explained = rule, true }},
			phase: UsedByProxies, again: in(proxiesPause)},
		"what proxies forget stays": {with: []func(*facts){gone, around(surroundings{useOf: leaving}), func(f *facts) {
			f.current, f.withdrawal.explained, f.history.since = rule, true, in(-time.Minute)
		}}, phase: UsedByProxies, again: in(proxiesPause)},
		"but not for ever": {with: []func(*facts){gone, around(surroundings{useOf: standing}), func(f *facts) {
			f.current, f.withdrawal.explained, f.history.since = rule, true, in(-time.Minute)
		}}, verb: deleteObject},
		"deleted": {with: []func(*facts){gone, func(f *facts) {
			f.withdrawal.explained, f.history.outdated = true, &outdated{version: 7, until: in(time.Second), removed: true}
		}}, phase: Removing, again: in(time.Second)},
		"nothing is left": {with: []func(*facts){func(f *facts) { f.content, f.live = nil, nil }}, phase: AsWanted},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range decisionCases(t, now) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &facts{
				now: now, id: mirror.ID{Kind: snapshot.DestinationRule, Namespace: "ns", Name: "reviews"}, view: surroundings{},
				content: routeTo("v3"), current: withSpec(routeTo("v1")),
				place: place{
					cluster: "cluster-1", plane: "gloo-mesh", writable: true, kind: mirror.KindState{Listed: true},
					limits: limits{patience: 15 * time.Second, grace: time.Minute, settle: 5 * time.Second},
				},
				live: &mirror.Object{Version: 7, Owner: mirror.Marked, Here: true}, history: &history{}, asked: true,
			}
			for _, change := range tt.with {
				change(f)
			}
			before := *f.history
			d := decide(f)
			assert.Equal(t, tt.verb, d.step.verb)
			assert.Equal(t, tt.phase, d.phase)
			assert.Equal(t, tt.again, d.again)
			assert.Equal(t, tt.code, d.reason.Code)
			assert.Equal(t, before, *f.history, "a decision changes nothing")
			if d.step.verb > readObject {
				assert.Equal(t, f.version(), d.step.version)
			}
		})
	}
}
