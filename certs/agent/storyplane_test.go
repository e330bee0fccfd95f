package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/issuer"
	"github.com/meshctl/meshctl/certs/roots"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const storyPlane = "plane-1"

// storyServe is the management plane of a story: the real store of roots, translation and issuer, one process. What the
// engine asks for is written by apply in one order, without the waits of the real Sink.
type storyServe struct {
	story      *story
	process    *process
	translator *engine.Translator
	store      *roots.Store
	// clients write to the management cluster (""), and to the others.
	clients           map[string]*kube.Client
	toStore, toIssuer chan struct{}
	stop              func()

	mu    sync.Mutex
	state *snapshot.State
	roots []*snapshot.VirtualMeshRoots
	sets  int
}

func newStoryServe(s *story, nth int) *storyServe {
	s.t.Helper()
	left, late := s.plan("serve", nth)
	p := &storyServe{
		story: s, process: &process{part: "serve", left: left, late: late}, translator: engine.New(engine.Options{}),
		clients: map[string]*kube.Client{}, toStore: make(chan struct{}, 1), toIssuer: make(chan struct{}, 1),
	}
	management := p.process.wrap(s.management)
	p.clients[""] = storyClient(s.t, management)
	configs := map[string]*rest.Config{}
	for _, m := range s.meshes {
		configs[m.name] = p.process.wrap(m.admin)
		p.clients[m.name] = storyClient(s.t, configs[m.name])
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	now := func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	var err error
	p.store, err = roots.New(roots.Options{
		Management: management, Namespace: s.namespace, PlaneID: storyPlane, State: p.latest, SetRoots: p.setRoots, Log: log, Now: now,
	})
	require.NoError(s.t, err)
	signer := issuer.New(issuer.Options{
		Roots: p.store, State: p.latest, Clusters: func() map[string]*rest.Config { return configs }, Log: log, Now: now,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { p.store.Run(ctx, p.toStore) })
	group.Go(func() { signer.Run(ctx, p.toIssuer) })
	p.stop = func() { cancel(); group.Wait() }
	return p
}

func storyClient(t require.TestingT, config *rest.Config) *kube.Client {
	client, err := kube.NewClient(config, kube.ClientOptions{Serializer: serializer.NewCodecFactory(scheme.New()).WithoutConversion()})
	require.NoError(t, err)
	return client
}

func (p *storyServe) latest() *snapshot.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *storyServe) setRoots(roots []*snapshot.VirtualMeshRoots) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots = roots
	p.sets++
}

func (p *storyServe) known() (roots []*snapshot.VirtualMeshRoots, sets int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roots, p.sets
}

// translate translates what is stored, with the roots that the store knows.
func (p *storyServe) translate(in *snapshot.Input) *snapshot.State {
	in.Roots, _ = p.known()
	state := p.translator.Translate(in)
	p.mu.Lock()
	p.state = state
	p.mu.Unlock()
	return state
}

// step does what follows from what is stored: roots, what is asked of agents, statuses, signatures. It reports whether the
// process has died.
func (p *storyServe) step() bool {
	t := p.story.t
	t.Helper()
	in, err := p.read(t.Context())
	require.NoError(t, err)
	p.translate(in)
	for range 2 { // a look at everything that began after the state was set
		_, before := p.known()
		signal(p.toStore)
		waittest.Until(t, "the store of roots looks", func() bool {
			_, now := p.known()
			return now > before || p.process.dead() != ""
		})
	}
	again := *in
	state := p.translate(&again)
	if p.process.dead() == "" {
		if err := p.write(t.Context(), state); err != nil {
			require.ErrorIs(t, err, errKilled)
		}
	}
	if p.process.dead() == "" {
		p.sign(state)
	}
	return p.process.dead() != ""
}

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// sign waits until the issuer has answered what it can.
func (p *storyServe) sign(state *snapshot.State) {
	t := p.story.t
	t.Helper()
	signal(p.toIssuer)
	for _, vm := range state.Plan.VirtualMeshes {
		if vm.Trust == nil {
			continue
		}
		for _, member := range vm.Trust.Members {
			m := p.story.mesh(member.Ref.Cluster)
			if member.Spec == nil || m.stale || p.store.Authority(vm.Ref, member.Spec.Trust.Root) == nil {
				continue
			}
			waittest.Until(t, "the issuer answers", func() bool {
				requests, err := m.reader.requests(t.Context())
				require.NoError(t, err)
				request := requests[member.Ref.Name]
				return request == nil || request.Status.ObservedGeneration == request.Generation || p.process.dead() != ""
			})
		}
	}
}

// read is the Input of what is stored.
func (p *storyServe) read(ctx context.Context) (*snapshot.Input, error) {
	s := p.story
	in := &snapshot.Input{Management: &snapshot.Management{Namespace: s.namespace, PlaneID: storyPlane}}
	for _, vm := range s.virtualMeshes() {
		in.Management.VirtualMeshes = append(in.Management.VirtualMeshes, &vm)
	}
	for i, m := range s.meshes {
		registered := &multiclusterv1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: m.name}}
		registered.Status.Namespace = m.own
		in.Management.KubernetesClusters = append(in.Management.KubernetesClusters, registered)
		c := enginetest.NamedCluster(i, m.name, enginetest.Place{Namespace: m.istio, Name: storyControlPlane}, enginetest.Place{Namespace: "apps", Name: "app"})
		c.ConfigMaps = append(c.ConfigMaps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "istio-ca-root-cert", Namespace: m.istio}, Data: map[string]string{"root-cert.pem": string(m.istiod.trusted.PEM())},
		})
		if m.stale {
			c.Sync = snapshot.Stale
		}
		certificates, err := m.reader.certificates(ctx)
		if err != nil {
			return nil, err
		}
		requests, err := m.reader.requests(ctx)
		if err != nil {
			return nil, err
		}
		c.IssuedCertificates, c.CertificateRequests = ordered(certificates), ordered(requests)
		in.Clusters = append(in.Clusters, c)
	}
	return in, nil
}

func ordered[T any](of map[string]*T) []*T {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	out := make([]*T, 0, len(names))
	for _, name := range sorted(names) {
		out = append(out, of[name])
	}
	return out
}

// write writes what differs from what is stored, and deletes what is not wanted any more.
func (p *storyServe) write(ctx context.Context, state *snapshot.State) error {
	wanted := map[snapshot.Ref]bool{}
	for o := range state.Output.Objects {
		if o.Ref.Kind == snapshot.IssuedCertificate || o.Ref.Kind == snapshot.PodBounceDirective {
			wanted[o.Ref] = true
			if err := p.apply(ctx, o); err != nil {
				return err
			}
		}
	}
	for s := range state.Output.Statuses.All() {
		if value, ok := s.Value.(*networkingv1.VirtualMeshStatus); ok {
			written := *value
			written.Conditions = nil // a Sink gives them their times; nothing here reads them
			if err := p.applyStatus(ctx, s.Ref, &written); err != nil {
				return err
			}
		}
	}
	for _, m := range p.story.meshes {
		if m.stale {
			continue
		}
		for _, kind := range []snapshot.Kind{snapshot.IssuedCertificate, snapshot.PodBounceDirective} {
			ref := snapshot.Ref{Kind: kind, Cluster: m.name, Namespace: m.own, Name: m.mesh}
			object := snapshot.APIObject(&certificatesv1.IssuedCertificate{})
			if kind == snapshot.PodBounceDirective {
				object = &certificatesv1.PodBounceDirective{}
			}
			err := p.clients[m.name].Get().AbsPath(kube.Path(kind, ref.Namespace, ref.Name, "")...).Do(ctx).Into(object)
			if wanted[ref] || apierrors.IsNotFound(err) {
				continue
			}
			err = p.clients[m.name].Delete().AbsPath(kube.Path(kind, ref.Namespace, ref.Name, "")...).Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

func (p *storyServe) apply(ctx context.Context, o *snapshot.Object) error {
	m := p.story.mesh(o.Ref.Cluster)
	if m.stale {
		return nil
	}
	switch spec := o.Content.Spec.(type) {
	case *certificatesv1.IssuedCertificateSpec:
		have, err := get(ctx, m.reader, o.Ref.Kind, o.Ref.Namespace, o.Ref.Name, &certificatesv1.IssuedCertificate{})
		if err != nil || have != nil && equality.Semantic.DeepEqual(have.Spec, *spec) {
			return err
		}
	case *certificatesv1.PodBounceDirectiveSpec:
		have, err := get(ctx, m.reader, o.Ref.Kind, o.Ref.Namespace, o.Ref.Name, &certificatesv1.PodBounceDirective{})
		if err != nil || have != nil && equality.Semantic.DeepEqual(have.Spec, *spec) {
			return err
		}
	default:
		return fmt.Errorf("%s has a spec %T", o.Ref, spec)
	}
	return p.patch(ctx, o.Ref, "", map[string]any{"spec": o.Content.Spec})
}

func (p *storyServe) applyStatus(ctx context.Context, ref snapshot.Ref, status *networkingv1.VirtualMeshStatus) error {
	vms := p.story.virtualMeshes()
	at := slices.IndexFunc(vms, func(vm networkingv1.VirtualMesh) bool { return vm.Name == ref.Name })
	have, err := json.Marshal(vms[at].Status)
	if err != nil {
		return err
	}
	want, err := json.Marshal(status)
	if err != nil || string(have) == string(want) {
		return err
	}
	return p.patch(ctx, ref, "status", map[string]any{"status": status})
}

// patch applies a part of an object.
func (p *storyServe) patch(ctx context.Context, ref snapshot.Ref, subresource string, part map[string]any) error {
	part["apiVersion"], part["kind"] = ref.Kind.Info().GroupVersion().String(), ref.Kind.String()
	part["metadata"] = map[string]any{"namespace": ref.Namespace, "name": ref.Name}
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	return p.clients[ref.Cluster].Patch(types.ApplyPatchType).AbsPath(kube.Path(ref.Kind, ref.Namespace, ref.Name, subresource)...).
		Param("fieldManager", snapshot.FieldManager).Param("force", "true").Body(text).Do(ctx).Error()
}
