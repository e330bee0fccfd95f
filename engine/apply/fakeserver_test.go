package apply_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fakeServer is an API server in memory, so that a test has a clock of its own and says
// what each write gets. It stores the fields of one manager and merges nothing.
type fakeServer struct {
	mu      sync.Mutex
	version int
	objects map[string]map[string]any
	// watches are the open watches, by the path of the kind.
	watches map[string][]*io.PipeWriter
	writes  []string
	// refuse says what a write gets, by its path; code 0 is to store it, and codeReset to
	// end the connection.
	refuse func(path string) (code int, message string)
	// stores is called before an object is stored or, with no object, deleted.
	stores func(method, path string, o map[string]any)
	// slow is how long a write takes longer.
	slow atomic.Int64
	// late is how long the events of watches take longer.
	late time.Duration
}

const (
	codeReset = -1
	// latency is the time that each answer takes.
	latency = 2 * time.Millisecond
)

func newFakeServer() *fakeServer {
	return &fakeServer{
		objects: map[string]map[string]any{}, watches: map[string][]*io.PipeWriter{},
		refuse: func(string) (int, string) { return 0, "" }, stores: func(string, string, map[string]any) {},
	}
}

func (s *fakeServer) config() *rest.Config { return &rest.Config{Host: "https://fake", Transport: s} }

// CloseIdleConnections is what client-go asks of a transport.
func (s *fakeServer) CloseIdleConnections() {}

// RoundTrip implements http.RoundTripper.
func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(latency)
	if r.Method == http.MethodPatch {
		time.Sleep(time.Duration(s.slow.Load()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path, query := r.URL.Path, r.URL.Query()
	switch {
	case path == "/readyz":
		return answer(http.StatusOK, "ok"), nil
	case r.Method == http.MethodGet && query.Get("sendInitialEvents") != "":
		return failure(http.StatusUnprocessableEntity, "no streaming lists"), nil
	case r.Method == http.MethodGet && query.Get("watch") != "":
		return s.watch(r.Context(), path), nil
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 3:
		return resources(path), nil
	case r.Method == http.MethodGet:
		return s.list(path, strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name=")), nil
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		return answer(http.StatusCreated, map[string]any{"status": map[string]any{"allowed": true}}), nil
	}
	s.writes = append(s.writes, path)
	switch code, message := s.refuse(path); code {
	case 0:
	case codeReset:
		return nil, io.ErrUnexpectedEOF
	default:
		return failure(code, message), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return s.store(r.Method, path, body)
}

func (s *fakeServer) store(method, path string, body []byte) (*http.Response, error) {
	path, isStatus := strings.CutSuffix(path, "/status")
	s.version++
	if method == http.MethodDelete {
		s.stores(method, path, nil)
		o := s.objects[path]
		delete(s.objects, path)
		s.send(path, "DELETED", o)
		return answer(http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}), nil
	}
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	meta := o["metadata"].(map[string]any)
	was, exists := s.objects[path]
	if isStatus {
		meta = was["metadata"].(map[string]any)
		o = map[string]any{"apiVersion": was["apiVersion"], "kind": was["kind"], "metadata": meta, "spec": was["spec"], "status": o["status"]}
	}
	if !isStatus {
		s.stores(method, path, o)
	}
	meta["resourceVersion"] = strconv.Itoa(s.version)
	meta["managedFields"] = []any{
		map[string]any{"manager": snapshot.FieldManager, "operation": "Apply", "fieldsV1": map[string]any{"f:spec": map[string]any{}, "f:metadata": fieldsOf(meta)}},
		map[string]any{"manager": snapshot.FieldManager, "operation": "Apply", "subresource": "status", "fieldsV1": map[string]any{"f:status": map[string]any{}}},
	}
	s.objects[path] = o
	code, event := http.StatusOK, "MODIFIED"
	if !exists {
		code, event = http.StatusCreated, "ADDED"
	}
	s.send(path, event, o)
	return answer(code, o), nil
}

// fieldsOf are the managed fields of labels and annotations.
func fieldsOf(meta map[string]any) map[string]any {
	out := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		values, _ := meta[field].(map[string]any)
		fields := map[string]any{}
		for key := range values {
			fields["f:"+key] = map[string]any{}
		}
		out["f:"+field] = fields
	}
	return out
}

// kindOf is the path of the objects of the kind of one.
func kindOf(path string) string {
	segments := strings.Split(path, "/")
	if at := slices.Index(segments, "namespaces"); at > 0 {
		segments = slices.Delete(segments, at, at+2)
	}
	return strings.Join(segments[:len(segments)-1], "/")
}

func (s *fakeServer) send(path, event string, o map[string]any) {
	line, _ := json.Marshal(map[string]any{"type": event, "object": o})
	for _, w := range s.watches[kindOf(path)] {
		deliver := func() { _, _ = w.Write(append(line, '\n')) } // one that has ended takes nothing
		if s.late > 0 {
			time.AfterFunc(s.late, deliver)
		} else {
			deliver()
		}
	}
}

func (s *fakeServer) watch(ctx context.Context, path string) *http.Response {
	reader, writer := io.Pipe()
	s.watches[path] = append(s.watches[path], writer)
	context.AfterFunc(ctx, func() { _ = writer.Close() })
	return &http.Response{StatusCode: http.StatusOK, Header: header(), Body: reader}
}

// fakeKinds are those that the server serves.
func fakeKinds() []snapshot.Kind {
	const whatever = snapshot.Watch | snapshot.Write | snapshot.WriteStatus
	return slices.Concat(snapshot.Kinds(snapshot.ManagedSide, whatever), snapshot.Kinds(snapshot.ManagementSide, whatever))
}

// resources answers which kinds a group has.
func resources(path string) *http.Response {
	var out metav1.APIResourceList
	for _, k := range fakeKinds() {
		if "/apis/"+k.Info().GroupVersion().String() == path {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: k.Info().Resource})
		}
	}
	return answer(http.StatusOK, out)
}

// list lists the objects of a kind or, if it is set, the one of a name.
func (s *fakeServer) list(path, name string) *http.Response {
	items := []any{}
	within := ""
	if segments := strings.Split(path, "/"); slices.Contains(segments, "namespaces") && segments[len(segments)-1] != "namespaces" {
		within = strings.Join(segments[:len(segments)-1], "/") + "/"
		path = kindOf(path + "/")
	}
	for at, o := range s.objects {
		if kindOf(at) == path && strings.HasPrefix(at, within) && (name == "" || strings.HasSuffix(at, "/"+name)) {
			items = append(items, o)
		}
	}
	for _, k := range fakeKinds() {
		info := k.Info()
		if strings.HasSuffix(path, info.Group+"/"+info.Version+"/"+info.Resource) {
			return answer(http.StatusOK, map[string]any{
				"apiVersion": info.GroupVersion().String(), "kind": info.Kind + "List",
				"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
			})
		}
	}
	return failure(http.StatusNotFound, "not served")
}

func header() http.Header { return http.Header{"Content-Type": []string{"application/json"}} }

func answer(code int, value any) *http.Response {
	raw, _ := json.Marshal(value)
	return &http.Response{StatusCode: code, Header: header(), Body: io.NopCloser(bytes.NewReader(raw))}
}

func failure(code int, message string) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusForbidden: metav1.StatusReasonForbidden,
	}
	return answer(code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Message: message, Reason: reasons[code],
	})
}

// count is the number of writes since the last count.
func (s *fakeServer) count() int { return len(s.written()) }

// written are the paths of the writes since the last count.
func (s *fakeServer) written() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// answers sets what writes get from now on.
func (s *fakeServer) answers(refuse func(path string) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// stored is the number of objects.
func (s *fakeServer) stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

// object is the stored object whose path ends like this.
func (s *fakeServer) object(suffix string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if strings.HasSuffix(path, "/"+suffix) {
			return o
		}
	}
	return nil
}

// bubble is what a test in a bubble has.
type bubble struct {
	*testing.T
	*fakeServer
	sink *sinkOf
}

// inBubble runs a test with a sink on a fake server, in which time passes only when
// everything waits.
func inBubble(t *testing.T, test func(*bubble), change ...func(*apply.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer()
		o := apply.Options{Namespace: "plane", Log: slog.New(slog.DiscardHandler), Widen: istio.Renderer{}.Widen}
		for _, c := range change {
			c(&o)
		}
		sink := &sinkOf{apply.New(o), newFleet(t, snapshot.Plane{Namespace: "plane"})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); sink.Run(ctx) }()
		defer func() {
			cancel()
			<-done
			sink.fleet.stop()
			time.Sleep(time.Second) // requests that nobody waits for end
		}()
		sink.Set(one, s.config())
		sink.Apply(output([]string{one}))
		require.NoError(t, sink.Settled(ctx))
		test(&bubble{T: t, fakeServer: s, sink: sink})
	})
}

// policies are an Output with AuthorizationPolicies, all of them with this content.
func policies(many int, content string) *snapshot.Output {
	objects := make([]*snapshot.Object, many)
	for n := range objects {
		objects[n] = policyObject(fmt.Sprintf("policy-%05d", n), content)
	}
	return output([]string{one}, objects...)
}

func policyObject(name, content string) *snapshot.Object {
	return &snapshot.Object{
		Ref:     snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: one, Namespace: "ns", Name: name},
		Content: &snapshot.Content{Spec: map[string]any{"content": content}},
	}
}
