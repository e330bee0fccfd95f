package apply_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	steps = 80
	two   = "cluster-2"
	// passed is how long it takes at least until proxies know a write.
	passed = 300 * time.Millisecond
	// patience is how long an object that is no longer wanted waits for routes that use it.
	patience = 15 * time.Second
	grace    = time.Minute
)

// schedule is a random history of edits, faults and foreign changes on two clusters, with what must hold at each write.
type schedule struct {
	*bubble
	random   *rand.Rand
	servers  map[string]*fakeServer
	services map[string]*service
	// policies are AuthorizationPolicies, by cluster and name.
	policies map[string]*snapshot.Object
	// edited is when a policy last was.
	edited map[snapshot.Ref]time.Time

	// mu guards the rest; who holds it waits for no lock of a server.
	mu sync.Mutex
	// dropped says of what is not wanted since when that is so, and explained, whether an edit says why.
	dropped map[string]*drop
	stored  map[string]*storedObject
	// released is when a route last used a name.
	released map[string]time.Time
	// wantedAt is when the last Output came.
	wantedAt   time.Time
	history    []string
	writes     int
	violations []string
}

// service is a VirtualService and the DestinationRules with the subset that it uses: one beside it and, for what is far, one in the
// cluster of the service.
type service struct {
	cluster, name, host string
	rules               []*snapshot.Object
	route               *snapshot.Object
}

type drop struct {
	at        time.Time
	explained bool
}

// storedObject is what an object in a cluster provides, since when, and needs.
type storedObject struct {
	provides map[string]time.Time
	needs    []string
}

// policy is that from which a service follows.
func (s *service) policy() snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "ns", Name: s.cluster + "-" + s.name}
}

// TestRandomSchedules checks at each write that no route comes before what it needs, that nothing goes that proxies may use, and that
// nothing is deleted without an edit or the grace period; at the end, that all is as wanted, and that nothing is left to write.
func TestRandomSchedules(t *testing.T) {
	shard.Unraced(t)
	t.Parallel()
	randomSchedules(t, 80)
}

// TestSomeRandomSchedules are also for the race detector, which makes each of them take ten times as long.
func TestSomeRandomSchedules(t *testing.T) {
	t.Parallel()
	randomSchedules(t, 8)
}

func randomSchedules(t *testing.T, count uint64) {
	t.Helper()
	first := waittest.Seed(t)
	for i := range count {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bubble) {
				s := &schedule{
					bubble: b, random: rand.New(rand.NewPCG(first+i, 1)), servers: map[string]*fakeServer{one: b.fakeServer, two: newFakeServer()},
					services: map[string]*service{}, policies: map[string]*snapshot.Object{}, dropped: map[string]*drop{},
					stored: map[string]*storedObject{}, released: map[string]time.Time{}, edited: map[snapshot.Ref]time.Time{},
				}
				for cluster, server := range s.servers {
					server.mu.Lock()
					server.stores = func(method, path string, o map[string]any) { s.check(cluster, method, path, o) }
					server.mu.Unlock()
				}
				s.sink.Set(two, s.servers[two].config())
				for range steps {
					s.step()
					time.Sleep(s.pause())
				}
				s.end()
				if t.Failed() {
					s.mu.Lock()
					defer s.mu.Unlock()
					t.Log("history:\n" + strings.Join(s.history, "\n"))
				}
			})
		})
	}
}

// pause is mostly short.
func (s *schedule) pause() time.Duration {
	switch s.random.IntN(20) {
	case 0:
		return time.Duration(s.random.IntN(60)) * time.Second
	case 1, 2, 3:
		return time.Duration(s.random.IntN(3000)) * time.Millisecond
	}
	return time.Duration(s.random.IntN(200)) * time.Millisecond
}

func (s *schedule) note(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(format, values...)
}

// enter is note for who holds the lock.
func (s *schedule) enter(format string, values ...any) {
	s.history = append(s.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, values...))
}

func (s *schedule) step() {
	switch s.random.IntN(10) {
	default:
		s.editService()
	case 0, 1:
		s.editPolicies()
	case 2, 3:
		s.breakSomething()
	case 4:
		s.interfere()
	}
}

// pick is one of the services that there may be.
func (s *schedule) pick() *service {
	switch s.random.IntN(3) {
	case 0:
		return &service{cluster: one, name: "near", host: "near.ns.svc.cluster.local"}
	case 1:
		return &service{cluster: two, name: "near", host: "near.ns.svc.cluster.local"}
	}
	return &service{cluster: two, name: "far", host: "far.ns.svc." + one + ".global"}
}

func subsetName(n int) string { return fmt.Sprintf("v%d", n) }

// editService moves the route of a service to another subset, or drops the service.
func (s *schedule) editService() {
	e := s.pick()
	key := e.cluster + "/" + e.name
	if s.services[key] != nil && s.random.IntN(5) == 0 {
		delete(s.services, key)
		explained := s.random.IntN(3) > 0
		s.note("drop %s, explained: %v", key, explained)
		s.apply(e.policy(), explained)
		return
	}
	to := s.random.IntN(5)
	clusters := []string{e.cluster}
	if e.name == "far" {
		clusters = []string{one, two}
	}
	for _, cluster := range clusters {
		rule := &networking.DestinationRule{Host: e.host}
		for n := range 5 {
			if n == to || s.random.IntN(3) == 0 {
				rule.Subsets = append(rule.Subsets, &networking.Subset{Name: subsetName(n), Labels: map[string]string{"version": subsetName(n)}})
			}
		}
		e.rules = append(e.rules, e.made(snapshot.DestinationRule, cluster, rule))
	}
	e.route = e.made(snapshot.VirtualService, e.cluster, &networking.VirtualService{Hosts: []string{e.host}, Http: []*networking.HTTPRoute{{
		Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: e.host, Subset: subsetName(to)}}},
	}}})
	s.services[key] = e
	s.note("route %s to v%d", key, to)
	s.apply(e.policy(), true)
}

func (s *service) made(kind snapshot.Kind, cluster string, spec any) *snapshot.Object {
	return related(&snapshot.Object{
		Ref:     snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: "ns", Name: s.name},
		Content: &snapshot.Content{Spec: spec, Parents: []snapshot.Ref{s.policy()}},
	})
}

func (s *schedule) editPolicies() {
	cluster, name := []string{one, two}[s.random.IntN(2)], fmt.Sprintf("policy-%d", s.random.IntN(8))
	key := cluster + "/" + name
	parent := snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: "ns", Name: name}
	if s.policies[key] != nil && s.random.IntN(2) == 0 {
		delete(s.policies, key)
		explained := s.random.IntN(2) == 0
		s.note("drop %s, explained: %v", key, explained)
		s.apply(parent, explained)
		return
	}
	o := policyObject(name, fmt.Sprint(s.random.IntN(100)))
	o.Ref.Cluster, o.Content.Parents = cluster, []snapshot.Ref{parent}
	s.policies[key] = o
	s.note("put %s", key)
	s.apply(parent, true)
}

// apply hands over what is wanted now, as it follows from an edit of a policy or, unless explained, from none.
func (s *schedule) apply(edited snapshot.Ref, explained bool) {
	wanted := s.wanted()
	out := output([]string{one, two}, wanted...)
	out.Withdrawals = snapshot.Withdrawals{Grace: grace, MaxPercent: 100}
	paths := map[string]bool{}
	for _, o := range wanted {
		paths[keyOf(o.Ref)] = true
	}
	edits := apply.Edits{}
	if explained {
		edits.Objects, s.edited[edited] = map[snapshot.Ref]bool{edited: true}, time.Now()
	}
	// Of two Outputs at once, only the second one may be written, which has the edits of both.
	explained = s.edited[edited].Equal(time.Now())
	s.mu.Lock()
	for key := range s.stored {
		switch d := s.dropped[key]; {
		case paths[key]:
			delete(s.dropped, key)
		case d == nil:
			s.dropped[key] = &drop{time.Now(), explained}
		default:
			d.explained = d.explained || explained
		}
	}
	s.wantedAt = time.Now()
	s.mu.Unlock()
	s.sink.ApplyEdited(out, edits)
}

func (s *schedule) wanted() []*snapshot.Object {
	var out []*snapshot.Object
	for _, key := range slices.Sorted(maps.Keys(s.services)) {
		out = append(append(out, s.services[key].rules...), s.services[key].route)
	}
	for _, key := range slices.Sorted(maps.Keys(s.policies)) {
		out = append(out, s.policies[key])
	}
	return out
}

func keyOf(r snapshot.Ref) string {
	return r.Cluster + "/" + r.Kind.Info().Resource + "/" + r.Name
}

// breakSomething lets some writes of a cluster fail for a time, or none any more.
func (s *schedule) breakSomething() {
	cluster := []string{one, two}[s.random.IntN(2)]
	code := []int{0, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusInternalServerError, codeReset}[s.random.IntN(5)]
	part := []string{"/", "/destinationrules/", "/virtualservices/", "/far", "/policy-"}[s.random.IntN(5)]
	until := time.Now().Add(time.Duration(s.random.IntN(8000)) * time.Millisecond)
	if code == http.StatusConflict {
		until = time.Now().Add(time.Duration(s.random.IntN(2000)) * time.Millisecond) // a route waits for a rule for its patience only
	}
	s.note("writes to %s in %s get %d until %s", part, cluster, code, until.Format("05.000"))
	s.servers[cluster].answers(func(path string) (int, string) {
		if strings.Contains(path+"/", part) && time.Now().Before(until) {
			return code, "broken"
		}
		return 0, ""
	})
}

// interfere changes or deletes an object that no route needs, as a user would.
func (s *schedule) interfere() {
	cluster := []string{one, two}[s.random.IntN(2)]
	server := s.servers[cluster]
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(server.objects)) {
		if !strings.Contains(path, "/authorizationpolicies/") || s.random.IntN(3) > 0 {
			continue
		}
		stores := server.stores
		server.stores = func(string, string, map[string]any) {}
		s.note("a user deletes %s in %s", path, cluster)
		_, err := server.store(http.MethodDelete, path, nil)
		server.stores = stores
		assert.NoError(s, err)
		return
	}
}

// check is called before an object is stored or deleted, with the lock of the server.
func (s *schedule) check(cluster, method, path string, o map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	segments := strings.Split(path, "/")
	resource, name := segments[len(segments)-2], segments[len(segments)-1]
	key := cluster + "/" + resource + "/" + name
	s.writes++
	is := &storedObject{provides: map[string]time.Time{}}
	if method != http.MethodDelete {
		is = storedOf(cluster, resource, o)
	}
	before := s.stored[key]
	if before == nil {
		before = &storedObject{}
	}
	s.enter("%s %s: provides %v, needs %v", method, key, slices.Sorted(maps.Keys(is.provides)), is.needs)
	for _, need := range is.needs {
		if !slices.Contains(before.needs, need) && !s.known(cluster, need, now) {
			s.violate("%s uses %s, which not all proxies know", key, need)
		}
	}
	for _, was := range before.needs {
		if !slices.Contains(is.needs, was) {
			s.released[was] = now
		}
	}
	d := s.dropped[key]
	for n, since := range before.provides {
		if _, has := is.provides[n]; has {
			is.provides[n] = since
			continue
		}
		if given := d != nil && now.Sub(d.at) >= patience; !given && (s.used(n) || now.Sub(s.released[n]) < passed) {
			s.violate("%s takes away %s, which proxies may use", key, n)
		}
	}
	if method == http.MethodDelete {
		switch {
		case d == nil && now.Sub(s.wantedAt) > 2*latency: // else it was on its way
			s.violate("%s is wanted, and is deleted", key)
		case d != nil && !d.explained && now.Sub(d.at) < grace && resource != "virtualservices":
			s.violate("%s is deleted after %s, without an edit", key, now.Sub(d.at))
		}
		delete(s.stored, key)
		return
	}
	s.stored[key] = is
}

func (s *schedule) violate(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	s.enter("VIOLATION: %s", text)
	s.violations = append(s.violations, text)
}

// known reports whether the proxies of a cluster, and of the home of a name, know the name.
func (s *schedule) known(cluster, n string, now time.Time) bool {
	places := []string{cluster}
	if strings.HasPrefix(n, "far.") && cluster != one {
		places = append(places, one)
	}
	for _, place := range places {
		found := false
		for key, o := range s.stored {
			since, has := o.provides[n]
			found = found || has && strings.HasPrefix(key, place+"/") && now.Sub(since) >= passed
		}
		if !found {
			return false
		}
	}
	return true
}

func (s *schedule) used(n string) bool {
	for _, o := range s.stored {
		if slices.Contains(o.needs, n) {
			return true
		}
	}
	return false
}

// storedOf reads from an object what it provides and needs. What is near has a name for each cluster.
func storedOf(cluster, resource string, o map[string]any) *storedObject {
	out := &storedObject{provides: map[string]time.Time{}}
	spec, _ := o["spec"].(map[string]any)
	full := func(host, subset any) string {
		if strings.HasPrefix(fmt.Sprint(host), "near.") {
			return fmt.Sprintf("%v/%v in %s", host, subset, cluster)
		}
		return fmt.Sprintf("%v/%v", host, subset)
	}
	switch resource {
	case "destinationrules":
		subsets, _ := spec["subsets"].([]any)
		for _, e := range subsets {
			out.provides[full(spec["host"], e.(map[string]any)["name"])] = time.Now()
		}
	case "virtualservices":
		for _, route := range spec["http"].([]any) {
			for _, to := range route.(map[string]any)["route"].([]any) {
				destination := to.(map[string]any)["destination"].(map[string]any)
				out.needs = append(out.needs, full(destination["host"], destination["subset"]))
			}
		}
	}
	return out
}
