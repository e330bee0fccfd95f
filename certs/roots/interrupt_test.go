package roots

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// killer ends a process right before a write, or right after it: then the answer is lost. None
// of its later requests is sent.
type killer struct {
	base  http.RoundTripper
	after bool

	mu   sync.Mutex
	left int
	dead string
}

var errKilled = errors.New("killed")

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dies := false
	if k.dead == "" && r.Method != http.MethodGet {
		if dies = k.left == 0; dies {
			k.dead = r.Method + " " + r.URL.Path
		}
		k.left--
	}
	if k.dead != "" && (!dies || !k.after) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errKilled
	}
	response, err := k.base.RoundTrip(r)
	if dies && err == nil {
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, err
}

func (k *killer) killed() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// TestAStoreDiesAtAnyWrite: a root is generated, followed by another and dropped, and a user's is
// kept, with a process that dies before or after any of the writes. The next one ends in the same
// state.
func TestAStoreDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	user := newRoot(t, 0, time.Now(), "user", 3650*day)
	for _, after := range []bool{false, true} {
		var writes []string
		for n := 0; ; n++ {
			require.Less(t, n, 20, "this does not end: %v", writes)
			dead := dieAt(t, user, n, after)
			if dead == "" {
				break
			}
			writes = append(writes, dead)
		}
		t.Logf("after=%t: killed at %v", after, writes)
		assert.GreaterOrEqual(t, len(writes), 4, "two roots, one certificate, one deletion")
	}
}

// dieAt runs a Store that dies at a write, and then another one. It returns the write; empty if
// there are not so many.
func dieAt(t *testing.T, user *pki.Authority, n int, after bool) string {
	t.Helper()
	w := newWorld(t)
	w.put("mine", corev1.SecretTypeOpaque, rootSecret(t, user))
	rotate := annotated(snapshot.TrustRotateAnnotation, time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
	k := &killer{left: n, after: after}
	dying := rest.CopyConfig(w.config)
	dying.Wrap(func(base http.RoundTripper) http.RoundTripper { k.base = base; return k })
	w.start(dying)
	w.have(virtualMesh(w.namespace, "own", fromSecret(w.namespace, "mine")), virtualMesh(w.namespace, "vm", rotate))
	waittest.Until(t, "it is done or dead", func() bool { return k.killed() != "" || w.finish() })
	w.end()
	dead := k.killed()
	if dead != "" {
		w.set(nil) // what the first one said says nothing of the next
		w.start(w.config)
		w.touch()
		waittest.Until(t, "the next one is done", w.finish)
	}
	names := slices.Sorted(maps.Keys(w.secrets()))
	require.Len(t, names, 3, dead)
	base := "vm." + w.namespace
	for _, name := range names {
		assert.NotEqual(t, base, name, "the former root is dropped: %s", dead)
	}
	assert.Equal(t, fingerprint(user), w.of("own").Signs)
	assert.Len(t, w.of("vm").Roots, 1)
	return dead
}

// finish has the Store go on once the second root signs, and reports whether the first one is gone.
func (w *world) finish() bool {
	own, vm := w.of("own"), w.of("vm")
	if own == nil || own.Signs == "" || vm == nil || vm.Signs == "" {
		return false
	}
	at := slices.IndexFunc(vm.Roots, func(r *snapshot.Root) bool { return r.Secret.Name == "vm."+w.namespace })
	if at >= 0 && vm.Roots[at].Fingerprint != vm.Signs {
		w.mu.Lock()
		w.unused = []string{vm.Roots[at].Fingerprint}
		w.mu.Unlock()
		w.ahead.Add(int64(unusedFor / 50))
		w.touch()
	}
	return at < 0 && len(vm.Roots) == 1
}
