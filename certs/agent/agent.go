package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	defaultResync = time.Minute
	// waitingResync is between two looks at a mesh in which something is to happen, at most. It is shorter where a look is
	// cheap: a twentieth of the time may be spent on looking, but no more than a look a second.
	waitingResync     = 10 * time.Second
	minWaitingResync  = time.Second
	waitingShare      = 20
	defaultLeaveAfter = time.Minute
	// maxWrites of one mesh in a row. A mesh needs about five; more would be two agents that undo each other's work.
	maxWrites = 20
	// meshTimeout bounds one look at a mesh, with what follows from it. A key of 16384 bits takes minutes.
	meshTimeout = 10 * time.Minute
)

// agent does the work of one term as the leader.
type agent struct {
	options Options
	store   *store
	clock   *clock
	metrics *metrics
	meshes  map[string]*mesh
	// watched are the Secrets that the meshes use.
	watched *watches
	// vaults are the requests that Vaults are signing.
	vaults *vaultCalls
}

// mesh is what the agent remembers of a mesh. All of it may be lost.
type mesh struct {
	name string
	// at is where its Secret is; it outlives the IssuedCertificate and its request.
	at *record
	// goneSince is when its IssuedCertificate was first seen to be gone; zero if it is there.
	goneSince time.Time
	// undirectedSince is when its PodBounceDirective was first seen to be gone; zero if it is there.
	undirectedSince time.Time
	// last is what the Verifier said last.
	last *MeshState
	// said is what was logged last, so that it is logged once.
	said string
	// waits: something is to happen that no watch shows.
	waits bool
}

// withDefaults checks the options.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Config == nil || o.Log == nil:
		return o, errors.New("the agent has no API server or no log; report it: the caller passes none")
	case o.Namespace == "":
		return o, errors.New("the agent has no namespace; set --namespace")
	}
	if o.Verifier == nil {
		o.Verifier = blind{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resync == 0 {
		o.Resync = defaultResync
	}
	if o.leaveAfter == 0 {
		o.leaveAfter = defaultLeaveAfter
	}
	if o.settleAfter == 0 {
		o.settleAfter = defaultSettleAfter
	}
	if o.tokens == "" {
		o.tokens = defaultTokens
	}
	if o.newKey == nil {
		o.newKey = func(bits int) (pki.Key, error) { return pki.NewRSAKey(rand.Reader, bits) }
	}
	return o, nil
}

func newAgent(o Options, m *metrics) (*agent, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	clock := &clock{now: o.Now}
	store, err := newStore(clock.wrap(o.Config), o.Namespace, o.newKey)
	if err != nil {
		return nil, err
	}
	return &agent{options: o, store: store, clock: clock, metrics: m, meshes: map[string]*mesh{}, vaults: newVaultCalls()}, nil
}

// run passes over all meshes until ctx ends: when something changes, and now and then.
func (a *agent) run(ctx context.Context) error {
	a.watched = newWatches(ctx, a.store.client)
	defer a.watched.wait()
	defer a.vaults.stop()
	a.watched.follow(snapshot.IssuedCertificate, a.options.Namespace, "")
	a.watched.follow(snapshot.CertificateRequest, a.options.Namespace, "")
	a.watched.follow(snapshot.PodBounceDirective, a.options.Namespace, "")
	failures := 0
	for ctx.Err() == nil {
		pause, began := a.options.Resync, time.Now()
		err := a.pass(ctx)
		switch {
		case err != nil:
			failures++
			pause = min(pause, kube.Jitter(kube.Backoff(time.Second, a.options.Resync, failures)))
			if a.waits() {
				pause = min(pause, waitingResync)
			}
		case a.waits():
			failures = 0
			pause = min(pause, waitingResync, max(minWaitingResync, waitingShare*time.Since(began)))
		default:
			failures = 0
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-a.watched.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// pass looks at every mesh once. One that fails does not stop the others.
func (a *agent) pass(ctx context.Context) error {
	certificates, err := a.store.certificates(ctx)
	if err != nil {
		return a.passed(ctx, err)
	}
	requests, err := a.store.requests(ctx)
	if err != nil {
		return a.passed(ctx, err)
	}
	for name := range certificates {
		a.remember(name)
	}
	for name := range requests {
		a.remember(name)
	}
	var group sync.WaitGroup
	errs := make([]error, len(a.meshes))
	for i, name := range slices.Sorted(maps.Keys(a.meshes)) {
		m := a.meshes[name]
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, meshTimeout)
			defer cancel()
			if caught := kube.Catch(func() { errs[i] = a.reconcile(ctx, m) }); caught != nil {
				errs[i] = caught
			}
			if errs[i] != nil && ctx.Err() == nil {
				a.say(m, errs[i].Error())
			}
		})
	}
	group.Wait()
	maps.DeleteFunc(a.meshes, func(_ string, m *mesh) bool { return m.name == "" })
	a.metrics.meshes.Set(float64(len(a.meshes)))
	return a.passed(ctx, errors.Join(errs...))
}

// waits reports whether something is to happen in any mesh.
func (a *agent) waits() bool {
	for _, m := range a.meshes {
		if m.waits {
			return true
		}
	}
	return false
}

// passed notes how a pass ended.
func (a *agent) passed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was being stopped
	}
	a.metrics.passed(a.options.Now(), err)
	return err
}

func (a *agent) remember(name string) {
	if a.meshes[name] == nil {
		a.meshes[name] = &mesh{name: name}
	}
}

// say logs what a mesh waits for, when it changes.
func (a *agent) say(m *mesh, text string) {
	if text != m.said && text != "" {
		a.options.Log.Warn(text, "mesh", m.name)
	}
	m.said = text
}

// tell writes what a mesh that leaves waits for where its administrator finds it: its IssuedCertificate, which would say so, is gone.
func (a *agent) tell(ctx context.Context, request *certificatesv1.CertificateRequest, text string) error {
	if request == nil || text == "" || request.Annotations[snapshot.WaitsAnnotation] == text {
		return nil
	}
	told := request.DeepCopy()
	annotate(told, map[string]string{snapshot.WaitsAnnotation: text})
	err := a.store.perform(ctx, &write{verb: put, what: "what the mesh waits for", request: told})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it is told after the next look
	}
	return err
}

// reconcile does for one mesh what is safe now, write by write.
func (a *agent) reconcile(ctx context.Context, m *mesh) error {
	for range maxWrites {
		again, err := a.step(ctx, m)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue // it has changed since it was read
		}
		if err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("mesh %s: %d writes did not bring it to rest; look for another agent or controller that changes the same objects", m.name, maxWrites)
}

// step observes, and does one write. again says that there may be more.
func (a *agent) step(ctx context.Context, m *mesh) (again bool, err error) {
	certificate, err := get(ctx, a.store, snapshot.IssuedCertificate, a.options.Namespace, m.name, &certificatesv1.IssuedCertificate{})
	if err != nil {
		return false, err
	}
	m.waits = true
	f, err := a.observe(ctx, m, certificate)
	if err != nil {
		return false, a.report(ctx, certificate, unreadable(certificate, err), err)
	}
	if f == nil {
		return false, nil
	}
	refreshErr := a.refresh(ctx, f)
	d := decide(f)
	if d.write != nil {
		if err := a.store.perform(ctx, d.write); err != nil {
			if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
				return true, nil
			}
			return false, a.report(ctx, certificate, unreadable(certificate, err), err)
		}
		a.options.Log.Info(d.write.String(), "mesh", m.name)
		a.metrics.writes.Inc()
		return true, nil
	}
	if d.done && refreshErr == nil {
		a.options.Log.Info("the mesh has left", "mesh", m.name)
		a.metrics.forget(m.name)
		*m = mesh{}
		return false, nil
	}
	if d.sign != nil {
		a.signByVault(d.sign)
	}
	waiting, restartErr := a.restart(ctx, f)
	failed := errors.Join(refreshErr, restartErr)
	if certificate == nil {
		text := cmp.Or(waiting, d.note)
		a.say(m, text)
		return false, errors.Join(failed, a.tell(ctx, f.request, text))
	}
	if waiting != "" && d.status.Trust != nil && d.status.State != certificatesv1.IssuedCertificateFinished {
		d.status.Trust.WaitingFor = waiting + f.heldUp()
	}
	m.waits = d.status.State != certificatesv1.IssuedCertificateFinished || d.status.Trust == nil || d.status.Trust.WaitingFor != ""
	a.say(m, d.status.Error)
	a.metrics.observe(m.name, d.status)
	return false, errors.Join(failed, a.report(ctx, certificate, d.status, nil))
}

// report writes a status if it says something new, and returns cause, or why the status could not be written.
func (a *agent) report(ctx context.Context, certificate *certificatesv1.IssuedCertificate, status *certificatesv1.IssuedCertificateStatus, cause error) error {
	if certificate == nil || status == nil || !differs(&certificate.Status, status) {
		return cause
	}
	return errors.Join(cause, a.store.putStatus(ctx, snapshot.IssuedCertificate, certificate, status))
}

// unreadable is the status when something could not be read or written: what was known stays, and so does of which generation it was.
func unreadable(certificate *certificatesv1.IssuedCertificate, err error) *certificatesv1.IssuedCertificateStatus {
	if certificate == nil {
		return nil
	}
	status := certificate.Status.DeepCopy()
	status.State, status.Error = certificatesv1.IssuedCertificateFailed, err.Error()
	return status
}

// restart has the Restarter do the next step, if the mesh's directive allows any, or did so before the mesh began to leave.
func (a *agent) restart(ctx context.Context, f *facts) (waiting string, err error) {
	directive := f.directive
	if directive == nil && f.leaves() && len(f.at.Restart) > 0 {
		directive = &certificatesv1.PodBounceDirective{Spec: certificatesv1.PodBounceDirectiveSpec{PodsToBounce: f.at.Restart}}
	}
	if a.options.Restarter == nil || f.mesh == nil || directive == nil {
		return "", nil
	}
	var save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error
	if f.directive != nil {
		save = func(ctx context.Context, status *certificatesv1.PodBounceDirectiveStatus) error {
			return a.store.putStatus(ctx, snapshot.PodBounceDirective, f.directive, status)
		}
	}
	waiting, err = a.options.Restarter.Restart(ctx, directive, f.target(), *f.mesh, save)
	if apierrors.IsNotFound(err) {
		return "", nil // the directive has gone meanwhile: the next look sees what may restart then
	}
	if err != nil {
		return "", fmt.Errorf("PodBounceDirective %s: %w", f.owner(), err)
	}
	return waiting, nil
}
