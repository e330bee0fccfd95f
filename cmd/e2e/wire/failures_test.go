package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/traffic"
)

// reply is what became of a request.
type reply struct {
	status int
	// attempt is the one to which the application answered; 0 if it did not.
	attempt int
	// marked: the route added the header X-Failing.
	marked bool
}

// counters are numbers by who counts them, and what: "page to details timeout".
type counters map[string]uint64

func (c counters) add(of string, n int) {
	if n > 0 {
		c[of] += uint64(n)
	}
}

// Who counts.
const (
	// called is the edge from productpage to details, as the caller's proxy counts it.
	called = "page to details "
	// ofPage and ofDetails are the rows of their workloads.
	ofPage, ofDetails = "page ", "details "
)

// failing is a way in which requests to details fail.
type failing struct {
	name string
	// policy is that of a TrafficPolicy for details, and byHand an object in cluster-1; both may be empty.
	policy, byHand string
	headers        func() map[string]string
	// parallel requests are sent at once; 1 if it is 0.
	parallel int
	// asked: requests fail because they ask the application for that. The object marks answers.
	asked bool
	// is a reply that shows the failure, which is counted as counts says. All other requests succeed.
	is     func(reply) bool
	counts func(counters, reply)
}

func answered(status int) func(reply) bool { return func(r reply) bool { return r.status == status } }

const detailsHost = "details.bookinfo.svc.cluster.local"

// detailsSubsets: callers expect another name in the certificate of one, and let few requests wait for the other. A proxy that gets other
// settings for a cluster counts the answers from that cluster anew, and what it counted since it was read last is lost. So they are there
// from the beginning, and routes lead to them.
const detailsSubsets = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: details-by-hand, namespace: bookinfo}
spec:
  host: ` + detailsHost + `
  subsets:
  - name: other
    trafficPolicy: {tls: {mode: ISTIO_MUTUAL, subjectAltNames: [spiffe://cluster.local/ns/other/sa/other]}}
  - name: limited
    trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1, http2MaxRequests: 1, maxRequestsPerConnection: 1}}}
`

// route is a VirtualService for details.
func route(http string) string {
	return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: details-by-hand, namespace: bookinfo}
spec:
  hosts: [` + detailsHost + `]
  http: [` + http + `]
`
}

var failures = []failing{
	{
		name: "two attempts without an answer in time", policy: `{retries: {attempts: 2, perTryTimeout: 400ms}}`,
		headers: func() map[string]string { return attempts("X-App-Delay", "1s", 2) },
		is:      func(r reply) bool { return r.attempt == 3 },
		counts: func(c counters, _ reply) {
			c.add(called+"2xx", 1)
			c.add(called+"retries", 2)
			c.add(called+"timeout", 2)
		},
	},
	{
		name: "two attempts that fail", asked: true, policy: `{retries: {attempts: 2}, headerManipulation: {appendResponseHeaders: {x-failing: "yes"}}}`,
		headers: func() map[string]string { return attempts("X-App-Status", "503", 2) },
		is:      func(r reply) bool { return r.attempt == 3 },
		counts:  func(c counters, _ reply) { c.add(called+"2xx", 1); c.add(called+"retries", 2) },
	},
	{
		name: "no answer in time", policy: `{requestTimeout: 300ms}`, headers: func() map[string]string { return map[string]string{"X-App-Delay": "2s"} },
		is: answered(504), counts: func(c counters, _ reply) { c.add(called+"5xx", 1); c.add(called+"timeout", 1) },
	},
	{
		name: "an abort that a policy asks for reaches no destination", policy: `{faultInjection: {abort: {httpStatus: 418}}}`,
		is: answered(418), counts: func(counters, reply) {},
	},
	{
		name: "a certificate for another name", byHand: route(`{retries: {attempts: 0}, route: [{destination: {host: ` + detailsHost + `, subset: other}}]}`),
		is: answered(503), counts: func(c counters, _ reply) { c.add(called+"5xx", 1); c.add(called+"tls", 1); c.add(called+"connect", 1) },
	},
	{
		name: "a limit of requests that wait", byHand: route(`{route: [{destination: {host: ` + detailsHost + `, subset: limited}}]}`),
		headers: func() map[string]string { return map[string]string{"X-App-Delay": "200ms"} }, parallel: 10,
		is: answered(503), counts: func(c counters, _ reply) { c.add(called+"5xx", 1); c.add(called+"overflow", 1) },
	},
	{
		name: "no cluster", byHand: route(`{route: [{destination: {host: nobody.bookinfo.svc.cluster.local}}]}`),
		is: answered(503), counts: func(c counters, _ reply) { c.add(ofPage+"no_cluster", 1) },
	},
	{
		name: "no route", byHand: route(`{match: [{uri: {exact: /nobody}}], route: [{destination: {host: ` + detailsHost + `}}]}`),
		is: answered(404), counts: func(c counters, _ reply) { c.add(ofPage+"no_route", 1) },
	},
	{
		name: "the application ends the connection", asked: true,
		byHand:  route(`{retries: {attempts: 0}, headers: {response: {set: {x-failing: "yes"}}}, route: [{destination: {host: ` + detailsHost + `}}]}`),
		headers: func() map[string]string { return map[string]string{"X-App-Reset": "true"} },
		is:      answered(503), counts: func(c counters, _ reply) { c.add(called+"5xx", 1); c.add(ofDetails+"reset", 1) },
	},
}

// attempts are the headers with which the application fails the first attempts of one request.
func attempts(header, value string, first int) map[string]string {
	h := fails(0, first)
	return map[string]string{header: value, "X-App-First": h.Get("X-App-First"), "X-App-Request": h.Get("X-App-Request")}
}

// failuresCounted: what fails is counted by its reason, and by no other, and what was tried again once.
func failuresCounted(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	e.byHand(t, detailsSubsets)
	s.settled(t)
	before, want := s.failures(t), counters{}
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			was := maps.Clone(want)
			f.happens(t, e, want)
			t.Log("sent:", since(was, want))
		})
	}
	t.Run("no endpoint", func(t *testing.T) {
		f := failing{is: answered(503), counts: func(c counters, _ reply) { c.add(called+"5xx", 1); c.add(called+"no_healthy", 1) }}
		s.settled(t) // what a pod counted since it was read last goes with it
		e.scale(t, "cluster-1", "details-v1", 0)
		f.shows(t, e, want)
		e.scale(t, "cluster-1", "details-v1", 1)
		f.ends(t, e, want)
	})
	waittest.NoError(t, "all is counted", func() error {
		if got := since(before, s.failures(t)); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", map[string]uint64(want), got)
		}
		return nil
	})
	s.settled(t)
	assert.Equal(t, map[string]uint64(want), since(before, s.failures(t)), "nothing is counted twice")
}

// happens has requests fail in one way, and adds what is to be counted of these and all others.
func (f *failing) happens(t *testing.T, e *environment, want counters) {
	t.Helper()
	t.Run("while it does", func(t *testing.T) {
		if f.byHand != "" {
			e.byHand(t, f.byHand)
		}
		if f.policy != "" {
			e.during(t, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: failing, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: `+f.policy+"\n")
		}
		f.shows(t, e, want)
	})
	f.ends(t, e, want)
}

// shows sends requests until they fail, and then some more.
func (f *failing) shows(t *testing.T, e *environment, want counters) {
	t.Helper()
	first := *f
	if f.asked {
		first.headers = nil
		first.is = func(r reply) bool { return r.marked }
		first.counts = func(c counters, _ reply) { c.add(called+"2xx", 1) }
	}
	waittest.NoError(t, "it is in force", func() error {
		if first.send(t, e, want, 1) == 0 {
			return errors.New("requests are answered as before")
		}
		return nil
	})
	require.Positive(t, f.send(t, e, want, 5))
}

// ends waits until what failed because of an object does not any more, and else until requests succeed that do not ask for failures.
func (f *failing) ends(t *testing.T, e *environment, want counters) {
	t.Helper()
	last := *f
	if f.asked {
		last.headers = nil
	}
	waittest.NoError(t, "requests succeed again", func() error {
		if n := last.send(t, e, want, 3); n > 0 {
			return fmt.Errorf("%d of them fail", n)
		}
		return nil
	})
}

// send sends requests times over, and returns how many fail in this way.
func (f *failing) send(t *testing.T, e *environment, want counters, times int) (failed int) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	for range times {
		call := app.Call{URL: "http://details:9080", Count: max(f.parallel, 1), Parallel: max(f.parallel, 1), TimeoutMs: 10_000}
		if f.headers != nil {
			call.Headers = header()
			for name, value := range f.headers() {
				call.Headers.Set(name, value)
			}
		}
		require.NoError(t, e.plane.Send(t.Context(), from, call, func(outcomes []app.Outcome) {
			for _, o := range outcomes {
				var echo struct{ Attempt int }
				_ = json.Unmarshal([]byte(o.Body), &echo) // a proxy answers with text
				r := reply{o.Status, echo.Attempt, o.Headers.Get("X-Failing") != ""}
				for range o.Micros {
					switch {
					case f.is(r):
						failed++
						f.counts(want, r)
					case r.status == 200:
						want.add(called+"2xx", 1)
						want.add(called+"retries", r.attempt-1)
					default:
						t.Errorf("%s: status %d: %s", f.name, o.Status, o.Error)
					}
				}
			}
		}))
	}
	return failed
}

// failures are what requests became, by the edge, and what failed and was tried again, also by the workload.
func (s *seen) failures(t *testing.T) counters {
	t.Helper()
	out := counters{}

	add := func(of string, row *traffic.Row) {
		for reason, n := range row.Failures {
			out[of+reason] += n
		}
		out.add(of+"retries", int(row.Retries))
	}
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		of := row.From.Name + " to " + row.To.Name + " "
		if row.From.Cluster == "cluster-1" && row.From.Name == "productpage-v1" && row.To.Cluster == "cluster-1" && row.To.Name == "details" {
			of = called
		}
		add(of, &row)
		for class, n := range row.Answers {
			out[of+class] += n
		}
	}
	for _, row := range s.report(t, traffic.ByWorkload).Rows {
		of := row.To.Cluster + "/" + row.To.Name + " "
		switch {
		case row.To.Cluster == "cluster-1" && row.To.Name == "productpage-v1":
			of = ofPage
		case row.To.Cluster == "cluster-1" && row.To.Name == "details-v1":
			of = ofDetails
		}
		add(of, &row)
	}
	return out
}
