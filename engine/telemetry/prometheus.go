package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of what a Prometheus answers.
const (
	// maxAnswer is the largest answer to one query, in bytes, and maxAnswered how many series all of them may have.
	maxAnswer   = 32 << 20
	maxAnswered = 200_000
	// maxAsked is how long all queries of a round may take.
	maxAsked = 10 * time.Second
)

// Keys of the Secret that a PrometheusSource names.
const (
	caKey    = "ca.crt"
	tokenKey = "token"
)

// question is one of the queries: the name under which the answer is taken, and the labels by which it is added up, beside those that
// name a pod. Of the same numbers from several jobs or replicas, the largest counts: by is what several of a pod have in common.
type question struct {
	name, selector string
	by             []string
}

// podLabels are those by which the numbers of a pod are found; see traffic.Gathered.
var podLabels = []string{"pod", "namespace", "kubernetes_pod_name", "kubernetes_namespace", "pod_name", "pod_namespace"}

// beside are the labels of who has read a number, not of the number: with several of them, it is there several times.
var beside = []string{"job", "instance", "endpoint", "container", "service", "prometheus", "prometheus_replica", "replica", "receive_replica"}

// questions are about what Istio's proxies count: requests, latencies, connections, and failures. See
// https://istio.io/latest/docs/reference/config/metrics/.
func questions() []question {
	ends := make([]string, 0, len(traffic.Bounds)+1)
	for _, end := range traffic.Bounds {
		ends = append(ends, strconv.FormatFloat(end, 'f', -1, 64)+`(\\.0)?`)
	}
	calls := []string{"reporter", "destination_service"}
	listeners := []string{"http_conn_manager_prefix", "envoy_http_conn_manager_prefix", "authz_enforce_result", "authz_dry_run_result"}
	return []question{
		{name: "istio_requests_total", by: slices.Concat(calls, []string{"response_code", "response_flags"})},
		{name: "istio_request_duration_milliseconds_bucket", selector: `le=~"` + strings.Join(ends, "|") + `|\\+Inf"`, by: slices.Concat(calls, []string{"le"})},
		{name: "istio_tcp_connections_opened_total", by: calls},
		{name: "istio_tcp_sent_bytes_total", by: calls},
		{name: "istio_tcp_received_bytes_total", by: calls},
		{name: "istio_build"}, // of proxies without requests
		{name: "envoy_http_no_cluster", by: listeners},
		{name: "envoy_http_no_route", by: listeners},
		{name: "envoy_http_rbac", by: listeners},
	}
}

// query is a question as PromQL.
func (q *question) query(match string) string {
	selector := strings.Trim(q.selector+","+match, ",")
	return fmt.Sprintf("sum by (%s) (max without (%s) (%s{%s}))", strings.Join(slices.Concat(podLabels, q.by), ", "), strings.Join(beside, ", "), q.name, selector)
}

// startedQuery is when proxies started. It is asked first: the time of its answer is that of the Prometheus.
func startedQuery(match string) string {
	return fmt.Sprintf("max by (%s) (timestamp(envoy_server_uptime{%s}) - envoy_server_uptime{%s})", strings.Join(podLabels, ", "), match, match)
}

// matchers are labels as PromQL has them between braces.
func matchers(labels map[string]multiclusterv1alpha1.MatchedLabel) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, name+"="+strconv.Quote(string(labels[name])))
	}
	return strings.Join(out, ",")
}

// gather reads what the Prometheus of a cluster has of its proxies.
func (t *term) gather(ctx context.Context, cluster string, source *multiclusterv1alpha1.PrometheusSource, pods []*traffic.Pod) {
	ctx, cancel := context.WithTimeout(ctx, maxAsked)
	defer cancel()
	gathered, err := t.ask(ctx, source, pods)
	at := time.Now()
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.answers, cluster)
	if err != nil {
		text := clip(snapshot.Clean(err.Error()))
		if errors.Is(err, context.DeadlineExceeded) {
			text = fmt.Sprintf("%s: no answer within %s", hostOf(source.Url), maxAsked)
		}
		t.answers[cluster] = text
		for _, pod := range pods {
			t.noteFailed(pod, traffic.NoPrometheus, text)
		}
		return
	}
	if gathered.Unknown+gathered.Refused > 0 {
		t.answers[cluster] = fmt.Sprintf("%d series are of no pod that is known here, and %d are not understood", gathered.Unknown, gathered.Refused)
	}
	for _, pod := range pods {
		switch reading := gathered.Reading(pod.Proxy); {
		case reading != nil && reading.Err() != nil:
			t.noteFailed(pod, traffic.ReasonOf(reading.Err()), reading.Err().Error())
		case reading != nil:
			t.note(pod, at, at, reading)
		default:
			t.noteFailed(pod, traffic.NotInPrometheus, "its series need the labels pod and namespace; "+hostOf(source.Url))
		}
	}
}

// ask asks all questions. All are answered, or none is.
func (t *term) ask(ctx context.Context, source *multiclusterv1alpha1.PrometheusSource, pods []*traffic.Pod) (*traffic.Gathered, error) {
	client, err := t.client(ctx, source)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	match := matchers(source.MatchLabels)
	started, err := client.query(ctx, startedQuery(match))
	if err != nil {
		return nil, err
	}
	at := time.Now()
	if len(started) > 0 {
		at = started[0].at
	}
	gathered, series := traffic.NewGathered(pods, at), len(started)
	for _, s := range started {
		gathered.Take(traffic.StartedSeries, s.labels, s.value)
	}
	for _, q := range questions() {
		answer, err := client.query(ctx, q.query(match))
		if err != nil {
			return nil, err
		}
		if series += len(answer); series > maxAnswered {
			return nil, fmt.Errorf("%s: it has more than %d series of the proxies; give matchLabels, or choose another door", hostOf(source.Url), maxAnswered)
		}
		for _, s := range answer {
			gathered.Take(q.name, s.labels, s.value)
		}
	}
	return gathered, nil
}

// promClient asks one server. Its errors say which, and have no secret.
type promClient struct {
	http.Client
	url, host, token string
}

// client is one for a server, with what its Secret has now.
func (t *term) client(ctx context.Context, source *multiclusterv1alpha1.PrometheusSource) (*promClient, error) {
	at, err := url.Parse(source.Url)
	if err != nil || at.Host == "" || at.User != nil || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("spec.telemetry.prometheus.url of its KubernetesCluster is no URL of a server, such as https://prometheus.example:9090")
	}
	out := &promClient{url: strings.TrimSuffix(source.Url, "/") + "/api/v1/query", host: at.Host}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name := source.SecretName; name != "" {
		if t.Secret == nil || at.Scheme != "https" {
			return nil, fmt.Errorf("%s: its Secret is only used with https", out.host)
		}
		data, err := t.Secret(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", out.host, kube.Text(err))
		}
		if ca, has := data[caKey]; has {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(ca) {
				return nil, fmt.Errorf("%s: key %s of Secret %s has no certificate in PEM", out.host, caKey, name)
			}
		}
		out.token = strings.TrimSpace(string(data[tokenKey]))
	}
	out.Client = http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10},
		// The token is for this server alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return out, nil
}

// promSeries is one of an answer.
type promSeries struct {
	labels map[string]string
	at     time.Time
	value  float64
}

// query asks one question (Prometheus: HTTP API, Instant queries).
func (c *promClient) query(ctx context.Context, text string) ([]promSeries, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(url.Values{"query": {text}}.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%s: it is no server that can be asked", c.host)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.Do(request)
	if err != nil {
		var of *url.Error // names the method and the whole URL
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("%s: %w", c.host, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: reading its answer: %w", c.host, err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("%s: its answer has more than %d bytes; give matchLabels, or choose another door", c.host, maxAnswer)
	}
	return c.answer(response.StatusCode, body)
}

// answer reads an answer.
func (c *promClient) answer(code int, body []byte) ([]promSeries, error) {
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			ResultType string `json:"resultType"`
			Result     []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	err := json.Unmarshal(body, &answer)
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, fmt.Errorf("%s: it answers %d %s; key %s of the Secret has to be a token that it takes", c.host, code, http.StatusText(code), tokenKey)
	case code >= 300 && code < 400:
		return nil, fmt.Errorf("%s: it answers %d %s; redirections are not followed: give the URL to which it leads", c.host, code, http.StatusText(code))
	case err == nil && answer.Error != "":
		return nil, fmt.Errorf("%s: it answers: %s", c.host, c.without(answer.Error))
	case code != http.StatusOK:
		return nil, fmt.Errorf("%s: it answers %d %s; check that the URL is that of a Prometheus, without /api/v1", c.host, code, http.StatusText(code))
	case err != nil || answer.Status != "success" || answer.Data.ResultType != "vector":
		return nil, fmt.Errorf("%s: its answer is none of Prometheus' API; check that the URL is that of a Prometheus, without /api/v1", c.host)
	}
	out := make([]promSeries, 0, len(answer.Data.Result))
	for _, r := range answer.Data.Result {
		at, isNumber := r.Value[0].(float64)
		text, isText := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if !isNumber || !isText || err != nil {
			return nil, fmt.Errorf("%s: its answer has a value that is none", c.host)
		}
		out = append(out, promSeries{labels: r.Metric, at: time.UnixMilli(int64(at * 1000)), value: value})
	}
	return out, nil
}

// without is a text of the server without the token: who gets it may send it back.
func (c *promClient) without(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, c.token, "(token)")
}

// hostOf is the host of a URL, to be shown.
func hostOf(text string) string {
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		return snapshot.Clean(at.Host)
	}
	return "its Prometheus"
}
