package apply_test

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRoutesAreWrittenAfterWhatTheyNeed and before that goes: in two clusters that are
// one API server, so that its versions order all writes.
func TestRoutesAreWrittenAfterWhatTheyNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const two = "cluster-2"
	route := func(subset string) *snapshot.Object {
		return related(w.object(snapshot.VirtualService, one, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a.global", Subset: subset}}},
		}}}))
	}
	rule := func(cluster, name string, subsets ...string) *snapshot.Object {
		spec := &networking.DestinationRule{Host: "a.global"}
		for _, s := range subsets {
			spec.Subsets = append(spec.Subsets, &networking.Subset{Name: s})
		}
		return related(w.object(snapshot.DestinationRule, cluster, name, spec))
	}
	without := output([]string{one, two}, route("v1"), rule(one, "near", "v1"))
	with := output([]string{one, two}, route("v3"), rule(one, "near", "v1", "v3"), rule(two, "far", "v3"))
	rules, err := w.of(snapshot.DestinationRule).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(rules.Stop)
	start := func() (*running, func()) {
		sink, stop := w.run(func(o *apply.Options) {
			o.Pace = apply.Pace{Debounce: 50 * time.Millisecond, Push: 50 * time.Millisecond}
		})
		sink.Set(one, w.config)
		sink.Set(two, w.config)
		return sink, stop
	}
	version := func(k snapshot.Kind, name string) int { return versionOf(t, w.get(k, name)) }

	sink, stop := start()
	sink.apply(without)
	sink.apply(with)
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "near"))
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "far"))
	require.Empty(t, sink.Failures())

	sink.apply(without)
	assert.Greater(t, version(snapshot.DestinationRule, "near"), version(snapshot.VirtualService, "route"))
	assert.Greater(t, deletedAt(t, rules), version(snapshot.VirtualService, "route"))

	// A process that starts afterwards finds what proxies use.
	sink.apply(with)
	stop()
	again, _ := start()
	again.apply(without)
	assert.Greater(t, version(snapshot.DestinationRule, "near"), version(snapshot.VirtualService, "route"))
	assert.Greater(t, deletedAt(t, rules), version(snapshot.VirtualService, "route"))
	assert.Equal(t, 1, again.total().Deleted)

	// A control plane may be configured to collect changes for longer.
	slow := output([]string{one, two}, route("v4"), rule(one, "near", "v1", "v4"))
	slow.Debounces = map[string]snapshot.Debounce{one: {After: time.Second, Most: time.Minute}}
	began := time.Now()
	again.apply(slow)
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
	assert.Greater(t, version(snapshot.VirtualService, "route"), version(snapshot.DestinationRule, "near"))
	for _, change := range again.total().Changes {
		if change.Ref.Kind == snapshot.VirtualService {
			assert.GreaterOrEqual(t, change.Waited, time.Second)
		} else {
			assert.Less(t, change.Waited, time.Second, "%s needs nothing", change.Ref)
		}
	}
}

// TestAGatewayOfAnEarlierProcess passes on what its routes need until they are written.
func TestAGatewayOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wanted := func(host string, passes ...string) *snapshot.Output {
		gateway := &networking.Gateway{Servers: []*networking.Server{{
			Port:  &networking.Port{Number: 15443, Name: "tls", Protocol: "TLS"},
			Hosts: passes, Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
		}}}
		return output([]string{one}, related(w.object(snapshot.Gateway, one, "gateway", gateway)),
			related(w.object(snapshot.VirtualService, one, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
			}}})))
	}
	start := func() (*running, func()) {
		sink, stop := w.run(func(o *apply.Options) {
			o.Pace = apply.Pace{Debounce: 50 * time.Millisecond, Push: 50 * time.Millisecond}
		})
		sink.Set(one, w.config)
		return sink, stop
	}
	sink, stop := start()
	sink.apply(wanted("a.global", "a.global", "b.global"))
	stop()
	again, _ := start()
	again.apply(wanted("b.global", "b.global"))
	gateway := w.get(snapshot.Gateway, "gateway")
	assert.Equal(t, []any{"b.global"}, nested(t, gateway, "spec", "servers").([]any)[0].(map[string]any)["hosts"])
	assert.Greater(t, versionOf(t, gateway), versionOf(t, w.get(snapshot.VirtualService, "route")))
}

// TestSubsetStaysUntilRoutesAreRead: of an earlier process, in all clusters, also if one
// takes longer to answer than control planes take to pass on a change.
func TestSubsetStaysUntilRoutesAreRead(t *testing.T) {
	t.Parallel()
	const two, host, debounce = "cluster-2", "a.global", 20 * time.Millisecond
	inCluster := func(r *http.Request) bool { return path.Base(r.URL.Path) == "virtualservices" }
	for name, slow := range map[string]func(*http.Request) bool{
		"routes are listed slowly":    func(r *http.Request) bool { return inCluster(r) && r.URL.Query().Get("fieldSelector") == "" },
		"a route is read slowly":      func(r *http.Request) bool { return inCluster(r) && r.URL.Query().Get("fieldSelector") != "" },
		"the route is written slowly": func(r *http.Request) bool { return path.Base(r.URL.Path) == "route" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wanted := func(route string, subsets ...string) *snapshot.Output {
				rule := &networking.DestinationRule{Host: host}
				for _, s := range subsets {
					rule.Subsets = append(rule.Subsets, &networking.Subset{Name: s})
				}
				return output([]string{one, two}, related(w.object(snapshot.DestinationRule, one, "rule", rule)),
					related(w.object(snapshot.VirtualService, two, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
						Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: route}}},
					}}})))
			}
			pace := func(o *apply.Options) { o.Pace = apply.Pace{Debounce: debounce, Push: debounce} }
			sink, stop := w.run(pace)
			sink.Set(one, w.config)
			sink.Set(two, w.config)
			sink.apply(wanted("v2", "v1", "v2"))
			// A cluster that did not answer in time is left out until it does.
			w.eventually("both are there", func() bool {
				return w.exists(snapshot.DestinationRule, "rule") && w.exists(snapshot.VirtualService, "route")
			})
			stop()

			ruleWritten := make(chan struct{})
			var once sync.Once
			fast, delayed := rest.CopyConfig(w.config), rest.CopyConfig(w.config)
			fast.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if path.Base(r.URL.Path) == "rule" && r.Method == http.MethodPatch {
						once.Do(func() { close(ruleWritten) })
					}
					return next.RoundTrip(r)
				})
			})
			delayed.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if slow(r) {
						select {
						case <-ruleWritten: // too early
						case <-time.After(20 * debounce):
						}
					}
					return next.RoundTrip(r)
				})
			})
			again, _ := w.run(pace)
			again.Set(one, fast)
			again.Set(two, delayed)
			again.apply(wanted("v1", "v1"))
			assert.Equal(t, []string{"v1"}, namesOf(t, w.get(snapshot.DestinationRule, "rule")))
			assert.Greater(t, versionOf(t, w.get(snapshot.DestinationRule, "rule")), versionOf(t, w.get(snapshot.VirtualService, "route")))
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRouteWaitsForAClusterThatDoesNotAnswer: as long as that takes, because all requests
// on it would fail. The policy says why, and nothing else waits.
func TestRouteWaitsForAClusterThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const two, host, patience = "cluster-2", "a.ns.svc.cluster-2.global", 300 * time.Millisecond
	w := newWorld(t)
	policy := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: w.namespace, Name: "shift"}
	route := func(subset string, timeout time.Duration) *snapshot.Object {
		o := related(w.object(snapshot.VirtualService, one, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
			Timeout: durationpb.New(timeout),
			Route:   []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: subset}}},
		}}}))
		o.Content.Parents = []snapshot.Ref{policy}
		return o
	}
	rule := func(cluster, name string, subsets ...string) *snapshot.Object {
		spec := &networking.DestinationRule{Host: host}
		for _, s := range subsets {
			spec.Subsets = append(spec.Subsets, &networking.Subset{Name: s})
		}
		return related(w.object(snapshot.DestinationRule, cluster, name, spec))
	}
	other := func(to string) *snapshot.Object { return w.object(snapshot.VirtualService, one, "other", hosts(to)) }
	frozen := func(objects ...*snapshot.Object) *snapshot.Output {
		out := output([]string{one, two}, objects...)
		out.Frozen = []string{two}
		return out
	}
	subsetsOf := func(name string) []string { return namesOf(t, w.get(snapshot.DestinationRule, name)) }
	goesTo := func() any { return subsetOf(t, w.get(snapshot.VirtualService, "route")) }
	sink, _ := w.run(func(o *apply.Options) {
		o.Pace = apply.Pace{Debounce: 50 * time.Millisecond, Push: 50 * time.Millisecond, Patience: patience}
	})
	sink.Set(one, w.config)
	sink.Set(two, w.config)
	sink.apply(output([]string{one, two}, route("v1", time.Second), rule(one, "near", "v1"), rule(two, "far", "v1"), other("x")))
	require.Equal(t, "v1", goesTo())

	// The cluster of the service is frozen, and does not have v3.
	toThree := []*snapshot.Object{route("v3", time.Second), rule(one, "near", "v3"), rule(two, "far", "v3")}
	held := func(other *snapshot.Object) {
		t.Helper()
		sink.apply(frozen(append(slices.Clone(toThree), other)...))
		failures := sink.Failures()
		require.Len(t, failures, 1)
		assert.Equal(t, snapshot.ClusterAwaited, failures[0].Code)
		assert.Equal(t, "route", failures[0].Ref.Name)
		assert.Equal(t, []snapshot.Ref{policy}, failures[0].Parents)
		assert.Contains(t, failures[0].What, two)
		assert.Contains(t, failures[0].What, host+"/v3")
		assert.Equal(t, "v1", goesTo())
		assert.Equal(t, []string{"v3", "v1"}, subsetsOf("near"), "the route that is there uses v1")
	}
	began := time.Now()
	for n := 0; time.Since(began) < 4*patience; n++ {
		to := strconv.Itoa(n)
		held(other(to))
		assert.Equal(t, []any{to}, nested(t, w.get(snapshot.VirtualService, "other"), "spec", "hosts"), "it needs nothing there")
	}
	assert.Equal(t, []string{"v1"}, subsetsOf("far"), "it is frozen")
	assert.Equal(t, 1, sink.total().Failed, "it is said once")

	// An edit that does not need it any more.
	sink.apply(frozen(route("v1", 2*time.Second), rule(one, "near", "v1"), rule(two, "far", "v1"), other("x")))
	assert.Equal(t, "2s", nested(t, w.get(snapshot.VirtualService, "route"), "spec", "http").([]any)[0].(map[string]any)["timeout"])
	assert.Empty(t, sink.Failures())

	// It answers again.
	held(other("y"))
	rules, err := w.of(snapshot.DestinationRule).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=far"})
	require.NoError(t, err)
	defer rules.Stop()
	sink.apply(output([]string{one, two}, append(slices.Clone(toThree), other("y"))...))
	w.eventually("the route is written", func() bool { return goesTo() == "v3" })
	// It is compared with the first version that has v3: without v1, it is written again later.
	written := next(t, rules, func(_ watch.Event, o *unstructured.Unstructured) bool {
		return slices.Contains(namesOf(t, o), "v3")
	})
	assert.Greater(t, versionOf(t, w.get(snapshot.VirtualService, "route")), versionOf(t, written))
	w.eventually("what no route uses is gone", func() bool { return len(subsetsOf("near")) == 1 && len(sink.Failures()) == 0 })

	// It is deregistered.
	sink.apply(frozen(route("v4", time.Second), rule(one, "near", "v3", "v4"), rule(two, "far", "v3", "v4"), other("y")))
	require.Len(t, sink.Failures(), 1)
	require.Equal(t, "v3", goesTo())
	sink.Remove(two)
	sink.apply(output([]string{one}, route("v4", time.Second), rule(one, "near", "v3", "v4"), other("y")))
	w.eventually("the route is written", func() bool { return goesTo() == "v4" && len(sink.Failures()) == 0 })
}

// TestSubsetStaysWhileItsRouteIsRefused: proxies have the route as it was written last, for
// as long as the API server refuses another one.
func TestSubsetStaysWhileItsRouteIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.sink.Apply(routeTo("v1"))
		require.NoError(b, b.sink.Settled(b.Context()))
		require.Equal(b, []string{"v1"}, b.subsets())

		b.answers(denied("virtualservices/route"))
		b.sink.Apply(routeTo("v2"))
		time.Sleep(time.Minute)
		assert.Equal(b, []string{"v2", "v1"}, b.subsets(), "the route that is there uses v1")
		require.NoError(b, b.sink.Settled(b.Context()), "it is not waited for")
		failures := b.sink.Failures()
		require.Len(b, failures, 2)
		assert.Equal(b, "not narrowed, because a route uses what would go: DestinationRule cluster-1/ns/rule", failures[0].What)
		assert.Equal(b, snapshot.VirtualService, failures[1].Ref.Kind)

		b.answers(always(0, ""))
		time.Sleep(time.Minute)
		assert.Equal(b, []string{"v2"}, b.subsets())
		assert.Empty(b, b.sink.Failures())
	})
}

// TestRouteWaitsWhileWhatItNeedsIsRefused: requests to a subset that proxies do not know fail.
func TestRouteWaitsWhileWhatItNeedsIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.sink.Apply(routeTo("v1"))
		require.NoError(b, b.sink.Settled(b.Context()))

		b.answers(denied("destinationrules/rule"))
		b.sink.Apply(routeTo("v2"))
		time.Sleep(time.Minute)
		assert.Equal(b, "v1", b.goesTo())
		require.NoError(b, b.sink.Settled(b.Context()), "it is not waited for")
		failures := map[string]string{}
		for _, f := range b.sink.Failures() {
			failures[f.Ref.Name] = f.Reason.String()
		}
		assert.Equal(b, map[string]string{
			"rule": denial,
			"route": "it waits for DestinationRule cluster-1/ns/rule, which cannot be written: without that, proxies do not know " +
				"a.global/v2, and requests sent there would fail",
		}, failures)

		b.answers(always(0, ""))
		time.Sleep(time.Minute)
		assert.Equal(b, "v2", b.goesTo())
		assert.Equal(b, []string{"v2"}, b.subsets())
		assert.Empty(b, b.sink.Failures())
	})
}

const denial = "denied by a policy of the cluster"

// denied refuses the writes of one object.
func denied(suffix string) func(string) (int, string) {
	return func(path string) (int, string) {
		if strings.HasSuffix(path, "/"+suffix) {
			return http.StatusForbidden, denial
		}
		return 0, ""
	}
}

// routeTo is an Output with a route to one subset, and the rule that has it.
func routeTo(subset string) *snapshot.Output {
	const host = "a.global"
	object := func(k snapshot.Kind, name string, spec any) *snapshot.Object {
		return related(&snapshot.Object{
			Ref:     snapshot.Ref{Kind: k, Cluster: one, Namespace: "ns", Name: name},
			Content: &snapshot.Content{Spec: spec},
		})
	}
	return output([]string{one},
		object(snapshot.VirtualService, "route", &networking.VirtualService{Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: subset}}},
		}}}),
		object(snapshot.DestinationRule, "rule", &networking.DestinationRule{Host: host, Subsets: []*networking.Subset{{Name: subset}}}))
}

// subsets are those of the rule of routeTo that is stored.
func (b *bubble) subsets() []string {
	return namesOf(b.T, &unstructured.Unstructured{Object: b.object("destinationrules/rule")})
}

// goesTo is the subset to which the route of routeTo leads that is stored.
func (b *bubble) goesTo() any {
	return subsetOf(b.T, &unstructured.Unstructured{Object: b.object("virtualservices/route")})
}

// subsetOf is the subset to which the first route of a VirtualService leads.
func subsetOf(t *testing.T, o *unstructured.Unstructured) any {
	t.Helper()
	to := nested(t, o, "spec", "http").([]any)[0].(map[string]any)["route"].([]any)[0]
	return to.(map[string]any)["destination"].(map[string]any)["subset"]
}

// namesOf are the names of a DestinationRule's subsets.
func namesOf(t *testing.T, rule *unstructured.Unstructured) (names []string) {
	t.Helper()
	list, _ := nested(t, rule, "spec", "subsets").([]any)
	for _, s := range list {
		names = append(names, s.(map[string]any)["name"].(string))
	}
	return names
}

func versionOf(t *testing.T, o *unstructured.Unstructured) int {
	t.Helper()
	version, err := strconv.Atoi(o.GetResourceVersion())
	require.NoError(t, err)
	return version
}

// deletedAt is the version at which the next object was deleted.
func deletedAt(t *testing.T, events watch.Interface) int {
	t.Helper()
	return versionOf(t, next(t, events, func(e watch.Event, _ *unstructured.Unstructured) bool { return e.Type == watch.Deleted }))
}

// next is the object of the next event that is looked for.
func next(t *testing.T, events watch.Interface, is func(watch.Event, *unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	for {
		select {
		case e, open := <-events.ResultChan():
			require.True(t, open, "the watch has ended")
			if o, ok := e.Object.(*unstructured.Unstructured); ok && is(e, o) {
				return o
			}
		case <-t.Context().Done():
			require.NoError(t, t.Context().Err())
		}
	}
}
