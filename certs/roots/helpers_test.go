package roots

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// small are the options of the tests' roots: larger keys take long.
var small = certificatesv1.CommonCertOptions{RsaKeySizeBytes: 2048}

// keys are made once.
var keys = sync.OnceValue(func() []pki.Key {
	out := make([]pki.Key, 3)
	for i := range out {
		key, err := pki.NewRSAKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[i] = key
	}
	return out
})

// newRoot is a root with one of the keys.
func newRoot(t testing.TB, key int, at time.Time, org string, life time.Duration) *pki.Authority {
	t.Helper()
	root, err := pki.NewRoot(rand.Reader, at, keys()[key], pki.Subject{Organization: org}, pki.Life{Lasts: life, Backdate: time.Hour})
	require.NoError(t, err)
	return root
}

func fingerprint(a *pki.Authority) string { return pki.Fingerprint(a.Chain().Root()) }

func rootSecret(t testing.TB, a *pki.Authority) map[string][]byte {
	t.Helper()
	data, err := a.RootSecret()
	require.NoError(t, err)
	return data
}

// virtualMesh asks for a generated root.
func virtualMesh(namespace, name string, change ...func(*networkingv1.VirtualMesh)) *networkingv1.VirtualMesh {
	options := small
	vm := &networkingv1.VirtualMesh{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Annotations: map[string]string{}}}
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{RootCertificateAuthority: &networkingv1.RootCertificateAuthority{Generated: &options}}}
	for _, c := range change {
		c(vm)
	}
	return vm
}

func annotated(name, value string) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) { vm.Annotations[name] = value }
}

func fromSecret(namespace, name string) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) {
		vm.Spec.MtlsConfig.Shared.RootCertificateAuthority = &networkingv1.RootCertificateAuthority{Secret: &commonv1.ObjectRef{Namespace: namespace, Name: name}}
	}
}

// world is a Store on a namespace of the shared API server.
type world struct {
	t         testing.TB
	config    *rest.Config
	api       kubernetes.Interface
	namespace string
	log       *sandboxtest.Buffer
	// ahead is by how much the clock of the Store is ahead.
	ahead   atomic.Int64
	changed chan struct{}
	store   *Store
	stop    func()

	mu    sync.Mutex
	vms   []*networkingv1.VirtualMesh
	roots []*snapshot.VirtualMeshRoots
	// unused are the roots that the Plan lists, and pins the trust domains that it found.
	unused []string
	pins   []snapshot.TrustPin
	// notCounted are VirtualMeshes whose namespace does not count.
	notCounted map[string]bool
	// sets counts calls of SetRoots with roots.
	sets int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	config := registrationtest.APIServer(t)
	w := &world{t: t, config: config, api: sandboxtest.Clientset(t, config), log: &sandboxtest.Buffer{}}
	ns, err := w.api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "roots-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.namespace = ns.Name
	t.Cleanup(func() {
		w.end()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// start runs a Store with a connection; end ends it.
func (w *world) start(config *rest.Config) {
	w.t.Helper()
	w.changed = make(chan struct{}, 1)
	store, err := New(Options{
		Management: config, Namespace: w.namespace, PlaneID: "plane-1", State: w.state, SetRoots: w.set,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
	})
	require.NoError(w.t, err)
	w.store = store
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); store.Run(ctx, w.changed) }()
	w.stop = func() { cancel(); <-ended }
}

func (w *world) end() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// have replaces the VirtualMeshes.
func (w *world) have(vms ...*networkingv1.VirtualMesh) {
	w.mu.Lock()
	w.vms = vms
	w.mu.Unlock()
	w.touch()
}

// touch has the Store look again.
func (w *world) touch() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *world) state() *snapshot.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	plan := &snapshot.Plan{}
	for _, vm := range w.vms {
		plan.VirtualMeshes = append(plan.VirtualMeshes, &snapshot.VirtualMeshPlan{
			Ref: snapshot.RefOf(snapshot.VirtualMesh, vm), VirtualMesh: vm, NotCounted: w.notCounted[vm.Name], Trust: &snapshot.TrustPlan{Unused: w.unused, Pins: w.pins},
		})
	}
	return &snapshot.State{Input: &snapshot.Input{Management: &snapshot.Management{Namespace: w.namespace, VirtualMeshes: w.vms}}, Plan: plan}
}

func (w *world) set(roots []*snapshot.VirtualMeshRoots) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roots = roots
	if len(roots) > 0 {
		w.sets++
	}
}

// of is what the Store said of a VirtualMesh last; nil if nothing.
func (w *world) of(name string) *snapshot.VirtualMeshRoots {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, roots := range w.roots {
		if roots.VirtualMesh.Name == name {
			return roots
		}
	}
	return nil
}

// until waits for what the Store says of a VirtualMesh.
func (w *world) until(what, name string, holds func(*snapshot.VirtualMeshRoots) bool) *snapshot.VirtualMeshRoots {
	w.t.Helper()
	waittest.NoError(w.t, what, func() error {
		if got := w.of(name); got == nil || !holds(got) {
			return fmt.Errorf("it says %+v", got)
		}
		return nil
	})
	return w.of(name)
}

// signs waits until a root of a VirtualMesh signs, other than some.
func (w *world) signs(name string, not ...string) *snapshot.VirtualMeshRoots {
	w.t.Helper()
	return w.until("a root signs", name, func(r *snapshot.VirtualMeshRoots) bool {
		for _, other := range not {
			if r.Signs == other {
				return false
			}
		}
		return r.Signs != ""
	})
}

// looked waits until the Store has looked at everything again.
func (w *world) looked() {
	w.t.Helper()
	for range 2 {
		w.mu.Lock()
		before := w.sets
		w.mu.Unlock()
		w.touch()
		waittest.Until(w.t, "the store looks again", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.sets > before
		})
	}
}

// secrets are those of the namespace, by name.
func (w *world) secrets() map[string]corev1.Secret {
	w.t.Helper()
	list, err := w.api.CoreV1().Secrets(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	out := map[string]corev1.Secret{}
	for _, s := range list.Items {
		out[s.Name] = s
	}
	return out
}

// put creates or replaces a Secret.
func (w *world) put(name string, kind corev1.SecretType, data map[string][]byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Type: kind, Data: data}
	_, err := w.api.CoreV1().Secrets(w.namespace).Create(w.t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		_, err = w.api.CoreV1().Secrets(w.namespace).Update(w.t.Context(), secret, metav1.UpdateOptions{})
	}
	require.NoError(w.t, err)
}

// assertSilent fails if a private key of the namespace is in a text.
func (w *world) assertSilent(texts ...string) {
	w.t.Helper()
	looked := 0
	for name, secret := range w.secrets() {
		for _, key := range []string{pki.RootKeyKey, pki.TLSKeyKey, pki.CAKeyKey} {
			for line := range strings.Lines(string(secret.Data[key])) {
				line = strings.TrimSpace(line)
				if len(line) < 40 || strings.HasPrefix(line, "-----") {
					continue
				}
				looked++
				for i, text := range texts {
					assert.NotContains(w.t, text, line, "key of %s in text %d", name, i)
				}
			}
		}
	}
	assert.Positive(w.t, looked)
}

// recorded is a record of the roots in Secrets.
func recorded(have ...*stored) *Record {
	out := &Record{}
	for _, o := range have {
		if o.root != nil {
			out.Roots = append(out.Roots, pki.Fingerprint(o.root))
		}
	}
	return out
}
