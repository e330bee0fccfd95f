package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// A field is seen in the answers to requests for a service of the same cluster, and
// to one of another cluster.
type field struct {
	name string
	// spec is the TrafficPolicy's, without its destinations.
	spec string
	// check returns what is wrong; it is called until nothing is.
	check func(context.Context, target) error
}

// target sends requests from productpage to one service.
type target struct {
	*environment
	from proxies.Pod
	url  string
}

func (s target) get(ctx context.Context, call app.Call) (exchange, error) {
	call.URL = s.url + call.URL
	return s.one(ctx, s.from, call)
}

// want sends a request and checks the status of its answer.
func (s target) want(ctx context.Context, status int, call app.Call) error {
	x, err := s.get(ctx, call)
	if err == nil && x.status != status {
		err = fmt.Errorf("%s %s %v: status %d, want %d: %s", call.Method, call.URL, call.Headers, x.status, status, x.error)
	}
	return err
}

func fields() []field {
	return []field{
		{"requestTimeout", `policy: {requestTimeout: 300ms}`, func(ctx context.Context, s target) error {
			return errors.Join(
				s.want(ctx, 504, app.Call{Headers: header("X-App-Delay", "3s")}),
				s.want(ctx, 200, app.Call{}),
			)
		}},
		{"retries", `policy: {retries: {attempts: 2, perTryTimeout: 400ms}}`, retries},
		{"faultInjection.abort", `policy: {faultInjection: {abort: {httpStatus: 418}, percentage: 25}}`, func(ctx context.Context, s target) error {
			all, err := s.send(ctx, s.from, app.Call{URL: s.url, Count: 800})
			if err != nil {
				return err
			}
			return withinFourSigma(countOf(all, "418"), 800, 0.25)
		}},
		{"faultInjection.fixedDelay", `policy: {faultInjection: {fixedDelay: 300ms}}`, func(ctx context.Context, s target) error {
			x, err := s.get(ctx, app.Call{})
			if err == nil && (x.took < 300*time.Millisecond || x.status != 200) {
				err = fmt.Errorf("status %d after %s", x.status, x.took)
			}
			return err
		}},
		{"headerManipulation", `policy: {headerManipulation: {appendRequestHeaders: {x-added: one}, removeRequestHeaders: [x-secret], appendResponseHeaders: {x-answer: two}, removeResponseHeaders: [content-type]}}`, headers},
		{"corsPolicy", `policy: {corsPolicy: {allowOrigins: [{exact: http://shop.example}], allowMethods: [POST], maxAge: 1h}}`, func(ctx context.Context, s target) error {
			x, err := s.get(ctx, app.Call{Method: "OPTIONS", Headers: header("Origin", "http://shop.example", "Access-Control-Request-Method", "POST")})
			if err != nil {
				return err
			}
			other, err := s.get(ctx, app.Call{Method: "OPTIONS", Headers: header("Origin", "http://other.example", "Access-Control-Request-Method", "POST")})
			if err != nil {
				return err
			}
			const allowed = "Access-Control-Allow-Origin"
			if x.headers.Get(allowed) != "http://shop.example" || x.headers.Get("Access-Control-Max-Age") != "3600" || other.headers.Get(allowed) != "" {
				return fmt.Errorf("answers have the headers %v and %v", x.headers, other.headers)
			}
			return nil
		}},
		{"mirror", `policy: {mirror: {kubeService: {name: ratings, namespace: bookinfo, clusterName: cluster-1}, percentage: 100}}`, mirror},
		{"csrf", `policy: {csrf: {filterEnabled: true, additionalOrigins: [{exact: friend.example}]}}`, func(ctx context.Context, s target) error {
			return errors.Join(
				s.want(ctx, 403, app.Call{Method: "POST", Headers: header("Origin", "http://evil.example")}),
				s.want(ctx, 200, app.Call{Method: "POST", Headers: header("Origin", "http://friend.example")}),
				s.want(ctx, 200, app.Call{Headers: header("Origin", "http://evil.example")}),
			)
		}},
		{"rateLimit", `policy: {rateLimit: {basic: {anonymousLimits: {unit: HOUR, requestsPerUnit: 5}}}}`, func(ctx context.Context, s target) error {
			all, err := s.send(ctx, s.from, app.Call{URL: s.url, Count: 20})
			if err != nil {
				return err
			}
			if passed := all.total() - countOf(all, "429"); passed > 5 {
				return fmt.Errorf("%d of 20 requests pass: %v", passed, all)
			}
			return nil
		}},
		{"mtls.istio.tlsMode", `policy: {mtls: {istio: {tlsMode: DISABLE}}}`, func(ctx context.Context, s target) error {
			if strings.HasSuffix(s.url, ".global:9080") {
				// Gateways pass nothing but mutual TLS, so callers keep using it.
				return s.want(ctx, 200, app.Call{})
			}
			if problems := s.problems(); !strings.Contains(problems, "("+string(snapshot.CallersUnidentified)+")") {
				return errors.New(problems)
			}
			// In plain text the caller has no identity that an AccessPolicy could allow.
			return s.want(ctx, 403, app.Call{})
		}},
		{"httpRequestMatchers", `httpRequestMatchers:
  - uri: {prefix: /teapot}
    method: PUT
    headers: [{name: x-user, value: "[a-z]+", regex: true}]
    queryParameters: [{name: debug, value: "1"}]
  policy: {faultInjection: {abort: {httpStatus: 418}}}`, func(ctx context.Context, s target) error {
			user := header("X-User", "jason")
			return errors.Join(
				s.want(ctx, 418, app.Call{URL: "/teapot/1?debug=1", Method: "PUT", Headers: user}),
				s.want(ctx, 200, app.Call{URL: "/pot?debug=1", Method: "PUT", Headers: user}),
				s.want(ctx, 200, app.Call{URL: "/teapot/1?debug=1", Method: "POST", Headers: user}),
				s.want(ctx, 200, app.Call{URL: "/teapot/1?debug=1", Method: "PUT", Headers: header("X-User", "42")}),
				s.want(ctx, 200, app.Call{URL: "/teapot/1?debug=2", Method: "PUT", Headers: user}),
			)
		}},
	}
}

// retries: a GET is tried again after a status of a gateway, after a reset, and after
// the timeout of a try; a POST, which may have been carried out, is not.
func retries(ctx context.Context, s target) error {
	for name, request := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"503":                {"GET", []string{"X-App-Status", "503"}, 200},
		"500":                {"GET", []string{"X-App-Status", "500"}, 500},
		"reset":              {"GET", []string{"X-App-Reset", "true"}, 200},
		"timeout of a try":   {"GET", []string{"X-App-Delay", "1s"}, 200},
		"POST with a 503":    {"POST", []string{"X-App-Status", "503"}, 503},
		"POST with a reset":  {"POST", []string{"X-App-Reset", "true"}, 503},
		"POST that succeeds": {"POST", nil, 200},
	} {
		h := fails(0, 2)
		h.Del("X-App-Status")
		for i := 0; i < len(request.headers); i += 2 {
			h.Set(request.headers[i], request.headers[i+1])
		}
		if err := s.want(ctx, request.want, app.Call{Method: request.method, Headers: h}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	x, err := s.get(ctx, app.Call{Headers: fails(503, 2)})
	if err == nil && x.echo.Attempt != 3 {
		err = fmt.Errorf("the third try succeeds, but there were %d", x.echo.Attempt)
	}
	return errors.Join(err, s.want(ctx, 503, app.Call{Headers: fails(503, 3)}))
}

func headers(ctx context.Context, s target) error {
	x, err := s.get(ctx, app.Call{Headers: header("X-Secret", "hidden", "X-Kept", "yes")})
	if err != nil {
		return err
	}
	got := x.echo.Headers
	if got.Get("X-Added") != "one" || got.Get("X-Secret") != "" || got.Get("X-Kept") != "yes" {
		return fmt.Errorf("the application received %v", got)
	}
	if x.headers.Get("X-Answer") != "two" || x.headers.Get("Content-Type") != "" {
		return fmt.Errorf("the caller received %v", x.headers)
	}
	return nil
}

// mirror: each request also arrives at the mirror, with the host that it was sent to.
func mirror(ctx context.Context, s target) error {
	shadows := func() (n int, err error) {
		pods, err := s.plane.Pods(ctx)
		if err != nil {
			return 0, err
		}
		for _, p := range pods {
			if p.Workload != "ratings-v1" || p.Cluster != "cluster-1" {
				continue
			}
			hosts, err := s.plane.Received(ctx, p)
			if err != nil {
				return 0, err
			}
			n += hosts[strings.TrimPrefix(s.url, "http://")]
		}
		return n, nil
	}
	before, err := shadows()
	if err != nil {
		return err
	}
	if err := s.want(ctx, 200, app.Call{}); err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return kube.Until(timed, "the mirrored request", func(context.Context) error {
		after, err := shadows()
		if err == nil && after <= before {
			err = fmt.Errorf("the mirror has %d requests, as before", before)
		}
		return err
	})
}

// countOf counts the outcomes that begin with a status.
func countOf(all counts, status string) int {
	return countIf(all, func(name string) bool { return strings.HasPrefix(name, status+" ") })
}

// countIf counts the requests by the names of their outcomes.
func countIf(all counts, is func(name string) bool) (n int) {
	for name, count := range all {
		if is(name) {
			n += count
		}
	}
	return n
}

// withinFourSigma checks a count of independent events.
func withinFourSigma(count, of int, share float64) error {
	mean, sigma := float64(of)*share, math.Sqrt(float64(of)*share*(1-share))
	if math.Abs(float64(count)-mean) > 4*sigma {
		return fmt.Errorf("%d of %d, want %.0f with a standard deviation of %.1f", count, of, mean, sigma)
	}
	return nil
}

// trafficPolicyFields sees each field at both targets, and that it goes with the
// policy.
func trafficPolicyFields(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	for _, f := range fields() {
		t.Run(f.name, func(t *testing.T) {
			e.during(t, `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: field, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: details, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
  `+f.spec+"\n")
			for where, url := range map[string]string{
				"local": "http://details:9080", "federated": "http://ratings.bookinfo.svc.cluster-2.global:9080",
			} {
				s := target{e, from, url}
				waittest.NoError(t, where, func() error { return f.check(t.Context(), s) })
			}
		})
	}
}
