package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
)

// controlSocket is where meshctl reaches the kubelet, in its working directory.
const controlSocket = "control.sock"

func listenUnix(path string) (net.Listener, error) { return net.Listen("unix", path) }

// identity says which pod it is.
type identity struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Pod       string `json:"pod"`
}

// podReport is a pod in the answer to GET /pods.
type podReport struct {
	identity
	UID     string `json:"uid"`
	IP      string `json:"ip"`
	Gateway bool   `json:"gateway,omitempty"`
	// Alone: it has no proxy.
	Alone bool `json:"alone,omitempty"`
	Ready bool `json:"ready"`
	// Error is why the pod does not run.
	Error string `json:"error,omitempty"`
	Fault fault  `json:"fault"`
}

// control serves meshctl. What concerns one pod is passed on to its application
// or to the admin interface of its Envoy.
func (n *node) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, n.report()) })
	mux.HandleFunc("PUT /faults", n.setFault)
	mux.HandleFunc("/pods/{uid}/app/{path...}", n.passOn((*pod).dialApp))
	mux.HandleFunc("/pods/{uid}/envoy/{path...}", n.passOn((*pod).dialAdmin))
	return mux
}

// dialApp connects to where the application is controlled.
func (p *pod) dialApp(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(p.folder, appSocket))
}

// dialAdmin connects to the admin interface of the pod's Envoy.
func (p *pod) dialAdmin(ctx context.Context, _, _ string) (net.Conn, error) {
	network := p.running().network
	if network == nil {
		return nil, errors.New("the pod has not started yet")
	}
	return network.dial(ctx, "tcp4", "127.0.0.1:15000")
}

// passOn passes a request on to a server of a pod.
func (n *node) passOn(dial func(p *pod, ctx context.Context, network, address string) (net.Conn, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		p := n.pods[r.PathValue("uid")]
		n.mu.Unlock()
		if p == nil {
			http.Error(w, "there is no such pod", http.StatusNotFound)
			return
		}
		proxy := &httputil.ReverseProxy{
			Rewrite: func(out *httputil.ProxyRequest) {
				out.Out.URL = &url.URL{Scheme: "http", Host: "pod", Path: "/" + r.PathValue("path"), RawQuery: r.URL.RawQuery}
			},
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					return dial(p, ctx, network, address)
				},
				DisableKeepAlives: true, DisableCompression: true,
			},
			FlushInterval: -1,
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, err.Error(), http.StatusBadGateway)
			},
		}
		proxy.ServeHTTP(w, r)
	}
}

func (n *node) report() []podReport {
	reports := []podReport{}
	for _, p := range n.all() {
		if p.program != nil && p.program != alone {
			continue
		}
		runs := p.running()
		p.mu.Lock()
		r := podReport{identity: p.identity, UID: p.uid, IP: p.ip, Gateway: p.gateway, Ready: p.ready, Alone: p.program == alone}
		if r.Alone {
			r.Ready = runs.app != nil && runs.app.running()
		}
		if p.err != nil {
			r.Error = p.err.Error()
		}
		p.mu.Unlock()
		r.Fault = n.breaks.of(p.identity)
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b podReport) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return reports
}

// answerJSON writes a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		// The status is already sent.
		log.Printf("answering: %v", err)
	}
}

// faultSettings is what an application takes at PUT /faults.
type faultSettings struct {
	// Status is answered instead of 200; 0 means none.
	Status int `json:"status,omitempty"`
	// DelayMs delays each answer, in milliseconds.
	DelayMs int `json:"delayMs,omitempty"`
}

// fault is what is wrong with a workload because the user asked for it.
type fault struct {
	faultSettings
	// Killed keeps the application from running, Unready the pod from being ready.
	Killed  bool `json:"killed,omitempty"`
	Unready bool `json:"unready,omitempty"`
}

// faultRequest is the content of PUT /faults: the fault of all pods of a workload,
// now and later. An empty fault repairs it.
type faultRequest struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Fault     fault  `json:"fault"`
}

// breaks are the faults of workloads.
type breaks struct {
	mu     sync.Mutex
	faults map[faultRequest]fault
}

func (b *breaks) of(i identity) fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.faults[faultRequest{Cluster: i.Cluster, Namespace: i.Namespace, Workload: i.Workload}]
}

func (b *breaks) set(r faultRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := r
	key.Fault = fault{}
	if b.faults == nil {
		b.faults = map[faultRequest]fault{}
	}
	b.faults[key] = r.Fault
}

// setFault breaks or repairs a workload, and answers when its applications know.
func (n *node) setFault(w http.ResponseWriter, r *http.Request) {
	var request faultRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	found := false
	for _, p := range n.all() {
		if p.Cluster == request.Cluster && p.Namespace == request.Namespace && p.Workload == request.Workload && !p.gateway && p.program == nil {
			found = true
		}
	}
	if !found {
		http.Error(w, fmt.Sprintf("no pod of workload %s in namespace %s of %s runs", request.Workload, request.Namespace, request.Cluster), http.StatusNotFound)
		return
	}
	n.breaks.set(request)
	for _, p := range n.all() {
		if p.Cluster == request.Cluster && p.Namespace == request.Namespace && p.Workload == request.Workload {
			p.obey(request.Fault)
		}
	}
}

// obey makes the pod's application behave as a fault says, and reports whether it
// does: it has started, and has answered. Each probe calls it, so that an
// application that was restarted, or is new, obeys too.
func (p *pod) obey(f fault) bool {
	r := p.running()
	if r.app == nil {
		return r.network != nil // a gateway
	}
	r.app.pause(f.Killed)
	want := obeyed{f.faultSettings, r.app.pid()}
	p.mu.Lock()
	has := p.told
	p.mu.Unlock()
	if want.pid == 0 || has == want {
		return want.pid != 0
	}
	if err := p.tell(f.faultSettings); err != nil {
		p.fail(fmt.Errorf("its application does not answer: %w", err))
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told, p.err = want, nil
	return true
}

// obeyed is a fault, and the process that has it.
type obeyed struct {
	faultSettings
	pid int
}

// tell sends a fault to the application.
func (p *pod) tell(f faultSettings) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	client := &http.Client{
		Timeout:   readyProbeTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dialApp},
	}
	request, err := http.NewRequest(http.MethodPut, "http://pod/faults", bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close()
}
