package watch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// lists answers as an API server that serves the core kinds and has one Pod. Its lists are
// no streams.
type lists struct {
	*httptest.Server
	// refused is the last element of the path of what may not be listed.
	refused atomic.Pointer[string]
	// pods answers requests for Pods instead, if set.
	pods atomic.Pointer[http.HandlerFunc]
	// most is the most bytes that one answer about Pods had when the client left.
	most atomic.Int64
}

const onePod = `{"metadata":{"namespace":"a","name":"p","resourceVersion":"5"},"spec":{"nodeName":"n"}}`

func newLists(t *testing.T) *lists {
	t.Helper()
	s := &lists{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *lists) serve(w http.ResponseWriter, r *http.Request) {
	pods := strings.HasSuffix(r.URL.Path, "/pods")
	hostile := s.pods.Load()
	w.Header().Set("Content-Type", "application/json")
	refused := s.refused.Load()
	switch query := r.URL.Query(); {
	case refused != nil && path.Base(r.URL.Path) == *refused:
		w.WriteHeader(http.StatusForbidden)
		write(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case r.URL.Path == "/readyz":
		write(w, "ok")
	case pods && hostile != nil:
		counted := &countedWriter{ResponseWriter: w}
		(*hostile)(counted, r)
		for most := s.most.Load(); counted.n > most && !s.most.CompareAndSwap(most, counted.n); most = s.most.Load() {
		}
	case query.Has("sendInitialEvents"):
		refuseStream(w)
	case query.Has("watch"):
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for hostile == s.pods.Load() && r.Context().Err() == nil {
			time.Sleep(time.Millisecond) // a watch lasts until the server changes
		}
	case pods:
		write(w, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%s]}`, onePod))
	case strings.HasPrefix(r.URL.Path, "/api/v1/"):
		names := map[string]string{"services": "Service", "nodes": "Node", "namespaces": "Namespace"}
		write(w, fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`, names[r.URL.Path[len("/api/v1/"):]]))
	default:
		kind, group := kindAt(r.URL.Path)
		write(w, fmt.Sprintf(`{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"9"},"items":[]}`, kind, group))
	}
}

func kindAt(path string) (kind, version string) {
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write) {
		if "/"+strings.TrimPrefix(strings.Join(kube.Path(k, "", "", ""), "/"), "/") == path {
			return k.Info().Kind, k.Info().GroupVersion().String()
		}
	}
	return "", ""
}

// countedWriter fails, and ends an answer, only when the client has left.
type countedWriter struct {
	http.ResponseWriter
	n int64
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// write writes to a client, which may have left.
func write(w http.ResponseWriter, text string) { _, _ = io.WriteString(w, text) }

// endlessly writes what text returns until the client leaves.
func endlessly(w http.ResponseWriter, text func(i int) string) {
	for i := 0; ; i++ {
		if _, err := fmt.Fprint(w, text(i)); err != nil {
			return
		}
	}
}

// refuseStream answers as a server that streams no lists.
func refuseStream(w http.ResponseWriter) {
	w.WriteHeader(http.StatusUnprocessableEntity)
	write(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
}

func podNamed(i int) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%d","namespace":"a","resourceVersion":"%d","labels":{%s}},`+
		`"spec":{"containers":[{"name":"c","image":"i","resources":{}}],"serviceAccountName":"s","nodeName":"n"},"status":{}}`, i, 10+i, labelsOfPods)
}

// labelsOfPods make a pod large, so that few of them take much memory.
var labelsOfPods = func() string {
	labels := make([]string, 30)
	for i := range labels {
		labels[i] = fmt.Sprintf("%q:%q", fmt.Sprint("app", i), strings.Repeat("x", 60))
	}
	return strings.Join(labels, ",")
}()

const listHead = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`

// TestAServerThatSendsTooMuchIsFrozen: what was read before stays, another cluster is read, and so is
// this one when it is as before.
func TestAServerThatSendsTooMuchIsFrozen(t *testing.T) {
	t.Parallel()
	// Where a watch was open, it is begun again before anything is listed, unless that is refused.
	answer := func(list, watch http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch query := r.URL.Query(); {
			case query.Has("sendInitialEvents"):
				refuseStream(w)
			case query.Has("watch"):
				watch(w, r)
			default:
				list(w, r)
			}
		}
	}
	listing := func(then http.HandlerFunc) http.HandlerFunc {
		return answer(then, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			write(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
		})
	}
	watching := func(then http.HandlerFunc) http.HandlerFunc {
		return answer(func(w http.ResponseWriter, _ *http.Request) { write(w, listHead+onePod+"]}") }, then)
	}
	for name, c := range map[string]struct {
		pods http.HandlerFunc
		says string
		// events bounds the changes of a minute; 0 for more than are sent. It is low, so that a busy machine sends that many.
		events int
	}{
		"a list without end": {listing(func(w http.ResponseWriter, _ *http.Request) {
			write(w, listHead)
			endlessly(w, func(i int) string { return podNamed(i) + "," })
		}), "its answers take more than 8 MiB of memory at once", 0},
		"an error without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			endlessly(w, func(int) string { return strings.Repeat("x", 1000) })
		}, "its answers take more than 8 MiB of memory at once", 0},
		"a list of nothing": {listing(func(w http.ResponseWriter, _ *http.Request) {
			write(w, listHead+strings.Repeat("{},", 100_000)+"{}]}")
		}), "its answers take more than 8 MiB of memory at once", 0},
		"pages without end": {listing(func(w http.ResponseWriter, r *http.Request) {
			page := 0
			_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page)
			write(w, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"%d"},"items":[`, page+1))
			for i := range 200 {
				write(w, podNamed(page*200+i)+",")
			}
			write(w, podNamed(page*200)+"]}")
		}), "its objects take more than the 4 MiB of memory that one cluster may have", 0},
		"a list as a stream without end": {func(w http.ResponseWriter, _ *http.Request) {
			endlessly(w, func(i int) string { return `{"type":"ADDED","object":` + podNamed(i) + "}\n" })
		}, "its objects take more than the 4 MiB of memory that one cluster may have", 0},
		"a change without end": {watching(func(w http.ResponseWriter, _ *http.Request) {
			write(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`)
			endlessly(w, func(int) string { return strings.Repeat("x", 1000) })
		}), "one change has more than 8 MiB", 0},
		"new objects without end": {watching(func(w http.ResponseWriter, _ *http.Request) {
			endlessly(w, func(i int) string { return `{"type":"MODIFIED","object":` + podNamed(i) + "}\n" })
		}), "its objects take more than the 4 MiB of memory that one cluster may have", 0},
		"changes without end": {watching(func(w http.ResponseWriter, _ *http.Request) {
			endlessly(w, func(int) string { return `{"type":"MODIFIED","object":` + podNamed(1) + "}\n" })
		}), "more than 200 changes within 1m0s", 200},
		"bookmarks without end": {watching(func(w http.ResponseWriter, _ *http.Request) {
			endlessly(w, func(i int) string {
				return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", 10+i)
			})
		}), "more than 200 changes within 1m0s", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			west, east := newLists(t), newLists(t)
			w, e := readWithin(t, west, c.events), readOf(t, east)
			before := w.is(snapshot.Synced)
			require.Len(t, before.Pods, 1)
			e.is(snapshot.Synced)

			west.pods.Store(&c.pods)
			now := w.is(snapshot.Stale)
			assert.True(t, snapshot.SameSlice(before.Services, now.Services))
			assert.NotEmpty(t, now.Pods, "what was read before stays")
			assert.Contains(t, now.Reason, west.URL+" sends too much: "+c.says)
			view, _ := e.state.current()
			assert.Equal(t, snapshot.Synced, view.Sync)
			assert.Less(t, west.most.Load(), int64(64<<20), "it was not read to the end")

			pages := pagesOf(300, nil)
			west.pods.Store(&pages)
			assert.Len(t, w.is(snapshot.Synced).Pods, 300)
		})
	}
}

// reading reads one cluster.
type reading struct {
	t       *testing.T
	state   *member
	changed chan struct{}
}

func readOf(t *testing.T, s *lists) *reading {
	t.Helper()
	return readWithin(t, s, 0)
}

// readWithin reads a cluster that may send a number of changes in a minute; 0: any number.
func readWithin(t *testing.T, s *lists, events int) *reading {
	t.Helper()
	r := &reading{t: t, changed: make(chan struct{}, 1)}
	settings := sessionSettings{
		scheme: scheme.New(), plane: snapshot.Plane{Namespace: "gloo-mesh"}, probeInterval: 50 * time.Millisecond,
		probeTimeout: waittest.Limit(), silence: kube.DefaultSilence,
		bounds: kube.Bounds{Answers: 8 << 20, Kept: 4 << 20, Events: cmp.Or(events, math.MaxInt), Pause: 300 * time.Millisecond, PauseMost: time.Second},
	}
	r.state = newMember(&snapshot.Cluster{Name: "west"}, settings, slog.New(slog.DiscardHandler), func() { signal(r.changed) })
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	r.state.connect(ctx, &group, "", &rest.Config{Host: s.URL})
	return r
}

// is waits until the cluster is in a state.
func (r *reading) is(sync snapshot.Sync) *snapshot.Cluster {
	r.t.Helper()
	deadline := time.After(waittest.Limit())
	for {
		view, _ := r.state.current()
		if view.Sync == sync {
			return view
		}
		select {
		case <-r.changed:
		case <-deadline:
			require.FailNow(r.t, "never came: "+sync.String(), "it is %s: %s", view.Sync, view.Reason)
		}
	}
}

// pagesOf answers as a server that has so many large Pods, and lists them in pages. A watch lasts until ended has something, or is closed.
func pagesOf(count int, ended <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Has("sendInitialEvents"):
			refuseStream(w)
		case query.Has("watch"):
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ended:
				write(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`+"\n")
			case <-r.Context().Done():
			}
		default:
			from, limit := 0, count
			_, _ = fmt.Sscan(query.Get("continue"), &from)
			_, _ = fmt.Sscan(query.Get("limit"), &limit)
			to, next := min(from+limit, count), ""
			if to < count {
				next = strconv.Itoa(to)
			}
			items := make([]string, 0, limit)
			for i := from; i < to; i++ {
				items = append(items, podNamed(i))
			}
			write(w, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, next, strings.Join(items, ",")))
		}
	}
}

// TestALargeClusterIsReadAgain: where the objects take most of what a cluster may have, they are listed again while they are kept, and
// read again after the cluster was frozen.
func TestALargeClusterIsReadAgain(t *testing.T) {
	t.Parallel()
	const count = 900 // of about 3 KiB, where 4 MiB may be kept
	west, ended := newLists(t), make(chan struct{})
	pods := pagesOf(count, ended)
	west.pods.Store(&pods)
	w := readOf(t, west)
	before := w.is(snapshot.Synced)
	require.Len(t, before.Pods, count)
	size := int64(0)
	for _, p := range before.Pods {
		size += sizeOf(p)
	}
	require.Greater(t, size, int64(5<<19), "they take more than half of what may be kept")
	require.Less(t, size, int64(4<<20))

	// A watch begins only after what was listed is kept.
	ended <- struct{}{}
	ended <- struct{}{}
	now := w.is(snapshot.Synced)
	assert.Same(t, before, now, "nothing has changed, and it was never frozen")

	refused := "pods"
	west.refused.Store(&refused)
	close(ended) // of this watch, and of all others
	assert.Len(t, w.is(snapshot.Stale).Pods, count)
	west.refused.Store(nil)
	now = w.is(snapshot.Synced)
	assert.True(t, snapshot.SameSlice(before.Pods, now.Pods))
}
