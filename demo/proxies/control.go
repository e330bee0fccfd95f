package proxies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/demo/app"
)

// Pod is a pod that runs.
type Pod struct {
	app.Identity
	UID     string `json:"uid"`
	IP      string `json:"ip"`
	Gateway bool   `json:"gateway,omitempty"`
	// Alone: it has no proxy.
	Alone bool `json:"alone,omitempty"`
	Ready bool `json:"ready"`
	// Error is why the pod does not run.
	Error string `json:"error,omitempty"`
	Fault Fault  `json:"fault"`
}

// Fault is what is wrong with a workload because the user asked for it.
type Fault struct {
	// Status is the HTTP status that the application answers; 0 means none.
	Status int `json:"status,omitempty"`
	// DelayMs delays each answer, in milliseconds.
	DelayMs int `json:"delayMs,omitempty"`
	// Killed keeps the application from running, Unready the pod from being ready.
	Killed  bool `json:"killed,omitempty"`
	Unready bool `json:"unready,omitempty"`
}

// Pods lists the pods that have a proxy, or run the demo's application without one, sorted by cluster, namespace and name.
func (p *Plane) Pods(ctx context.Context) ([]Pod, error) {
	var pods []Pod
	return pods, p.do(ctx, http.MethodGet, "pods", nil, &pods)
}

// Ready returns an error unless all pods are ready.
func (p *Plane) Ready(ctx context.Context) error {
	pods, err := p.Pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !pod.Ready {
			return fmt.Errorf("proxies: pod %s of %s is not ready; see the logs in %s", pod.Pod, pod.Cluster, filepath.Dir(p.process.Log))
		}
	}
	return nil
}

// Break gives all pods of a workload a fault, also those that start later; an empty
// fault repairs it.
func (p *Plane) Break(ctx context.Context, workload app.Identity, fault Fault) error {
	return p.do(ctx, http.MethodPut, "faults", struct {
		app.Identity
		Fault Fault `json:"fault"`
	}{workload, fault}, nil)
}

// Received returns how many requests arrived at the application of a pod, by
// authority.
func (p *Plane) Received(ctx context.Context, pod Pod) (map[string]int, error) {
	var hosts map[string]int
	return hosts, p.do(ctx, http.MethodGet, "pods/"+pod.UID+"/app/received", nil, &hosts)
}

// Stats returns the counters and gauges of a pod's Envoy whose names match a regular
// expression. See https://www.envoyproxy.io/docs/envoy/latest/operations/admin.
func (p *Plane) Stats(ctx context.Context, pod Pod, filter string) (map[string]int64, error) {
	data, err := p.Admin(ctx, pod, "stats?type=All&filter="+filter)
	if err != nil {
		return nil, err
	}
	stats := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if value, err := strconv.ParseInt(text, 10, 64); err == nil { // others are histograms and texts
			stats[name] = value
		}
	}
	return stats, nil
}

// Admin gets a page of the admin interface of a pod's Envoy.
func (p *Plane) Admin(ctx context.Context, pod Pod, path string) ([]byte, error) {
	response, err := p.send(ctx, http.MethodGet, "pods/"+pod.UID+"/envoy/"+path, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	return data, nil
}

// do sends a request with a JSON body, and decodes the answer unless it is nil.
func (p *Plane) do(ctx context.Context, method, path string, body, answer any) error {
	response, err := p.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("proxies: %s %s: %w", method, path, err)
	}
	return nil
}

// send sends a request to the process. Any status but 200 is an error.
func (p *Plane) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://proxies/"+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, fmt.Errorf("proxies: %s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(text)))
	}
	return response, nil
}

// dial connects to the control socket. The path of a socket may have 107 bytes
// only, so it is given relative to an open folder.
func (p *Plane) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	folder, err := os.Open(p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), controlSocket))
}
