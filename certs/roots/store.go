package roots

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const secretKind = snapshot.Secret

// lookAgain is how often everything is compared although nothing has changed: time passes.
const lookAgain = 15 * time.Second

// Options configure a Store. Management, Namespace, State and SetRoots are required.
type Options struct {
	// Management reaches the management cluster; its writes are those of the leader.
	Management *rest.Config
	// Namespace and PlaneID are those of the management plane.
	Namespace, PlaneID string
	// State is the latest translation; nil before the first.
	State func() *snapshot.State
	// SetRoots receives the roots for the next Input. It does not block.
	SetRoots func([]*snapshot.VirtualMeshRoots)
	// Log receives the log; slog.Default() if nil.
	Log *slog.Logger
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Store keeps the roots of all VirtualMeshes. It runs once.
type Store struct {
	Options
	client    *kube.Client
	clientset kube.Clientset
	dynamic   dynamic.Interface
	group     sync.WaitGroup
	// woken has room for one: after any change everything is compared again.
	woken chan struct{}
	// turns are taken to make a key.
	turns chan struct{}

	// What follows belongs to Run. Generated reads the Secrets of the namespace, and users those of
	// users, by Ref.
	generated *secretReader
	users     map[snapshot.Ref]*secretReader
	records   *recordReader
	// vaults read the CA certificates of Vaults, by VirtualMesh.
	vaults  map[snapshot.Ref]*vaultReader
	before  map[snapshot.Ref]*snapshot.VirtualMeshRoots
	unused  map[snapshot.Ref]map[string]time.Time
	dropped map[snapshot.Ref]map[string]bool
	gone    map[snapshot.Ref]time.Time
	// said are the problems that were logged last.
	said map[snapshot.Ref]string

	mu          sync.Mutex
	making      map[snapshot.Ref]*making
	authorities map[snapshot.Ref]map[string]*pki.Authority
}

// New prepares a Store. It does no I/O.
func New(o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{
		Options: o, woken: make(chan struct{}, 1), turns: make(chan struct{}, 1),
		users: map[snapshot.Ref]*secretReader{}, vaults: map[snapshot.Ref]*vaultReader{}, before: map[snapshot.Ref]*snapshot.VirtualMeshRoots{},
		unused: map[snapshot.Ref]map[string]time.Time{}, dropped: map[snapshot.Ref]map[string]bool{},
		gone: map[snapshot.Ref]time.Time{}, said: map[snapshot.Ref]string{}, making: map[snapshot.Ref]*making{},
		authorities: map[snapshot.Ref]map[string]*pki.Authority{},
	}
	var err error
	s.client, err = kube.NewClient(o.Management, kube.ClientOptions{Serializer: serializer.NewCodecFactory(scheme.New()).WithoutConversion()})
	if err != nil {
		return nil, fmt.Errorf("root certificates: %w", err)
	}
	unlimited := kube.Unlimited(o.Management)
	if s.clientset, err = kube.NewClientset(unlimited); err != nil {
		return nil, fmt.Errorf("root certificates: building a client: %w", err)
	}
	if s.dynamic, err = dynamic.NewForConfig(unlimited); err != nil {
		return nil, fmt.Errorf("root certificates: building a client: %w", err)
	}
	return s, nil
}

// Authority is what signs with a root of a VirtualMesh; nil if its key is not there.
func (s *Store) Authority(virtualMesh snapshot.Ref, fingerprint string) *pki.Authority {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authorities[virtualMesh][fingerprint]
}

func (s *Store) keys(vm snapshot.Ref) map[string]*pki.Authority {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authorities[vm]
}

// wake has everything compared again.
func (s *Store) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Run keeps the roots until ctx ends. Changed is signalled when State has something new.
func (s *Store) Run(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.group.Wait()
	defer cancel()
	s.generated = watch(ctx, s, secretKind, "Secrets of type "+string(SecretType)+" in namespace "+s.Namespace, s.Namespace,
		fields.OneTermEqualSelector("type", string(SecretType)).String(), s.readGenerated)
	s.records = watch(ctx, s, snapshot.ConfigMap, "ConfigMap "+s.Namespace+"/"+RecordName, s.Namespace,
		fields.OneTermEqualSelector("metadata.name", RecordName).String(), func(m *corev1.ConfigMap) *corev1.ConfigMap { return m })
	failures := 0
	for {
		pause := lookAgain
		if failures > 0 {
			pause = kube.Jitter(kube.Backoff(retryFirst, retryLast, failures))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-s.woken:
		case <-time.After(pause):
		}
		err := s.sync(ctx)
		if ctx.Err() != nil {
			return
		}
		failures++
		if err == nil {
			failures = 0
		} else {
			s.Log.Warn("root certificates are not up to date; trying again", "error", err)
		}
	}
}

// view is a VirtualMesh and what was decided about it.
type view struct {
	facts
	decision decision
}

// sync compares what is with what is wanted, and does what is missing.
func (s *Store) sync(ctx context.Context) error {
	state := s.State()
	if state == nil || state.Input.Management == nil {
		return nil
	}
	all, refused, filled := s.generated.all()
	if !filled {
		if refused != "" {
			return fmt.Errorf("%s", refused)
		}
		return nil
	}
	recorded, refused, filled := s.records.all()
	if !filled {
		if refused != "" {
			return fmt.Errorf("%s", refused)
		}
		return nil
	}
	by, known := map[snapshot.Ref][]*stored{}, map[snapshot.Ref]bool{}
	for _, o := range all {
		by[o.virtualMesh] = append(by[o.virtualMesh], o)
	}
	s.readUsers(ctx, state)
	s.readVaults(ctx, state)
	var views []*view
	for _, vm := range state.Input.Management.VirtualMeshes {
		ref := snapshot.RefOf(snapshot.VirtualMesh, vm)
		known[ref] = true
		if Keeps(vm) && counts(state.Plan, ref) {
			record, problem := recordOf(recorded, ref)
			v := &view{facts: facts{record: record, recordProblem: problem, vm: vm, ref: ref, have: by[ref], user: s.userOf(vm), vault: s.vaultOf(vm), before: s.before[ref], dropped: s.dropped[ref], now: s.Now()}}
			if err := kube.Catch(func() { v.decision = decide(v.facts) }); err != nil {
				s.Log.Error("the roots of a VirtualMesh stay as they are. This is a bug in meshctl, please report it", "virtualMesh", ref.Namespace+"/"+ref.Name, "error", err)
				v.decision = decision{roots: v.before, authorities: s.keys(ref)}
			}
			if problem != "" {
				v.decision.authorities = s.keys(ref)
			}
			views = append(views, v)
		}
	}
	err := s.act(ctx, views)
	s.publish(views)
	for _, v := range views {
		if err == nil {
			err = s.pin(ctx, v, state.Plan)
		}
	}
	for _, v := range views {
		if err == nil {
			err = s.dropUnused(ctx, v, unusedIn(state.Plan, v.ref))
		}
	}
	if err == nil {
		err = s.dropGone(ctx, all, known)
	}
	return err
}

// counts reports whether a VirtualMesh is one that counts, as far as the Plan says. The roots of another one stay as they are.
func counts(plan *snapshot.Plan, ref snapshot.Ref) bool {
	return plan == nil || !slices.ContainsFunc(plan.VirtualMeshes, func(v *snapshot.VirtualMeshPlan) bool { return v.Ref == ref && v.NotCounted })
}

// Keeps reports whether the roots of a VirtualMesh are kept here.
func Keeps(vm *networkingv1.VirtualMesh) bool {
	return vm.Spec.MtlsConfig.Issued() != nil
}

// act makes what was decided to be made.
func (s *Store) act(ctx context.Context, views []*view) error {
	var first error
	for _, v := range views {
		if fingerprints := v.decision.record; len(fingerprints) > 0 {
			err := s.record(ctx, v.ref, func(r *Record) *Record {
				r.accept(fingerprints, nil)
				if v.decision.made {
					r.Making = ""
				}
				return r
			})
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
		}
		for _, cert := range v.decision.keep {
			if err := s.keep(ctx, v.vm, cert); err != nil && first == nil {
				first = err
			}
			delete(s.dropped[v.ref], pki.Fingerprint(cert))
		}
		if v.decision.make == nil {
			continue
		}
		problem := s.start(ctx, v.vm, *v.decision.make)
		roots := v.decision.roots
		switch {
		case problem == "":
		case roots == nil:
			v.decision.roots = &snapshot.VirtualMeshRoots{VirtualMesh: v.ref, Problem: problem}
		case roots.Problem == "" || roots.Signs == "":
			roots.Problem = problem
		}
	}
	return first
}

// publish passes the keys to the issuer, and then the certificates to the engine.
func (s *Store) publish(views []*view) {
	authorities := map[snapshot.Ref]map[string]*pki.Authority{}
	before := map[snapshot.Ref]*snapshot.VirtualMeshRoots{}
	var out []*snapshot.VirtualMeshRoots
	for _, v := range views {
		authorities[v.ref] = v.decision.authorities
		if roots := v.decision.roots; roots != nil {
			out = append(out, roots)
			before[v.ref] = roots
			s.report(v, roots)
		}
	}
	s.mu.Lock()
	s.authorities = authorities
	s.mu.Unlock()
	s.before = before
	s.SetRoots(out)
}

// report logs what changed.
func (s *Store) report(v *view, roots *snapshot.VirtualMeshRoots) {
	log := s.Log.With("virtualMesh", v.ref.Namespace+"/"+v.ref.Name)
	if was := v.facts.before; was == nil || was.Signs != roots.Signs {
		switch {
		case roots.Signs == "":
			log.Warn("no root certificate can sign", "problem", roots.Problem)
		case v.user != nil:
			log.Info("the user's root certificate is to sign", "fingerprint", roots.Signs, "secret", describe(secretOf(v.vm)))
		case v.vault != nil:
			log.Info("the root certificate of a Vault is to sign", "fingerprint", roots.Signs, "vault", v.vault.name)
		default:
			log.Info("a generated root certificate is to sign", "fingerprint", roots.Signs)
		}
	}
	if s.said[v.ref] != roots.Problem && roots.Problem != "" && roots.Signs != "" {
		log.Warn("something is wrong with a root certificate", "problem", roots.Problem)
	}
	s.said[v.ref] = roots.Problem
}

// unusedIn are the roots that the Plan lists as unused.
func unusedIn(plan *snapshot.Plan, vm snapshot.Ref) []string {
	if plan == nil {
		return nil
	}
	for _, v := range plan.VirtualMeshes {
		if v.Ref == vm && v.Trust != nil {
			return v.Trust.Unused
		}
	}
	return nil
}

// secretOf names the user's Secret with the root of a VirtualMesh; zero if there is none.
func secretOf(vm *networkingv1.VirtualMesh) snapshot.Ref {
	if !Keeps(vm) || vaultCA(vm) != nil {
		return snapshot.Ref{}
	}
	ca := vm.Spec.MtlsConfig.Issued().RootCertificateAuthority
	if ca == nil || ca.Secret == nil {
		return snapshot.Ref{}
	}
	return snapshot.Ref{Kind: snapshot.Secret, Namespace: ca.Secret.Namespace, Name: ca.Secret.Name}
}

// istiodSecret is what istiod signs with, on the management cluster itself. It is not a root for
// others (behaviour.md, section 6.1).
var istiodSecret = snapshot.Ref{Kind: snapshot.Secret, Namespace: "istio-system", Name: "cacerts"}

// readUsers watches the Secrets that VirtualMeshes name, and no others.
func (s *Store) readUsers(ctx context.Context, state *snapshot.State) {
	wanted := map[snapshot.Ref]bool{}
	for _, vm := range state.Input.Management.VirtualMeshes {
		if ref := secretOf(vm); ref.Name != "" && ref != istiodSecret && counts(state.Plan, snapshot.RefOf(snapshot.VirtualMesh, vm)) {
			wanted[ref] = true
		}
	}
	for ref := range wanted {
		if s.users[ref] == nil {
			s.users[ref] = watch(ctx, s, secretKind, describe(ref), ref.Namespace, fields.OneTermEqualSelector("metadata.name", ref.Name).String(), s.readUser)
		}
	}
	for ref, r := range maps.Clone(s.users) {
		if !wanted[ref] {
			r.stop()
			delete(s.users, ref)
		}
	}
}

// userOf is the user's Secret of a VirtualMesh; nil if it names none.
func (s *Store) userOf(vm *networkingv1.VirtualMesh) *userSecret {
	ref := secretOf(vm)
	if ref.Name == "" {
		return nil
	}
	if ref == istiodSecret {
		return &userSecret{problem: describe(ref) + " is what istiod signs with, and is replaced in a rotation; copy your root into a Secret of another name"}
	}
	items, refused, filled := s.users[ref].all()
	if filled || refused != "" {
		if problem := mayNotSign(ref, items, snapshot.RefOf(snapshot.VirtualMesh, vm)); problem != "" {
			return &userSecret{problem: problem}
		}
	}
	switch {
	case len(items) > 0 && items[0].problem != "":
		return &userSecret{problem: items[0].problem}
	case len(items) > 0 && items[0].authority == nil:
		return &userSecret{problem: describe(ref) + " has a certificate and no private key; add the key as " + pki.RootKeyKey}
	case len(items) > 0:
		return &userSecret{stored: items[0]}
	case refused != "":
		return &userSecret{problem: refused}
	case filled:
		return &userSecret{problem: describe(ref) + " does not exist; create it with " + pki.RootCertKey + " and " + pki.RootKeyKey}
	}
	return &userSecret{pending: true}
}

// mayNotSign says why a Secret is not that of a VirtualMesh that names it; empty if it is. Who edits
// the Secret decides: it is in the namespace of the VirtualMesh, or it names that. Of a Secret elsewhere
// it is not told whether it exists.
func mayNotSign(ref snapshot.Ref, found []*stored, vm snapshot.Ref) string {
	owner := snapshot.Ref{}
	if len(found) > 0 {
		owner = found[0].virtualMesh
	}
	switch {
	case owner == vm:
		return ""
	case ref.Namespace != vm.Namespace:
		return fmt.Sprintf("%s does not exist, or does not name this VirtualMesh, and is in another namespace: if it may sign with that, annotate the Secret with %s=%s/%s",
			describe(ref), VirtualMeshAnnotation, vm.Namespace, vm.Name)
	case owner != (snapshot.Ref{}):
		return fmt.Sprintf("%s is that of VirtualMesh %s/%s, as its annotation or name says; give this one a Secret of its own", describe(ref), owner.Namespace, owner.Name)
	}
	return ""
}
