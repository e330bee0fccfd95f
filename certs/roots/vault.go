package roots

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// vaultEvery is how often the CA certificates of a Vault are read.
	vaultEvery = time.Minute
	// vaultTimeout bounds reading them once.
	vaultTimeout = 30 * time.Second
)

// vaultCA is the Vault that signs for a VirtualMesh; nil if none does.
func vaultCA(vm *networkingv1.VirtualMesh) *certificatesv1.VaultCA {
	if !Keeps(vm) || vm.Spec.MtlsConfig.Issued().IntermediateCertificateAuthority == nil {
		return nil
	}
	return vm.Spec.MtlsConfig.Issued().IntermediateCertificateAuthority.Vault
}

// vaultRoot is what a Vault said last.
type vaultRoot struct {
	// name is what messages call it.
	name string
	// pending: it was not read yet.
	pending bool
	// chain is that of the CA that signs; problem says why there is none.
	chain   pki.Chain
	problem string
}

// addVault lists the root of the Vault, if its certificate is kept, and returns its fingerprint; empty if it cannot be used.
func (d *decider) addVault() string {
	if value, ok := d.vm.Annotations[snapshot.TrustRotateAnnotation]; ok {
		d.problems = append(d.problems, fmt.Sprintf("annotation %s=%.64q has no effect, because a Vault signs; make another root in Vault, and remove the annotation",
			snapshot.TrustRotateAnnotation, value))
	}
	if d.vault.problem != "" {
		d.problems = append(d.problems, d.vault.problem)
		return ""
	}
	root := d.vault.chain.Root()
	if err := pki.Verify(d.vault.chain, pki.NewBundle(root), d.now, pki.Want{Usage: pki.ForCA}); err != nil {
		d.problems = append(d.problems, fmt.Sprintf("the CA of %s cannot sign: %v", d.vault.name, err))
		return ""
	}
	if !d.kept(root) {
		return signer(d.before)
	}
	for _, cert := range slices.Backward(d.vault.chain) {
		if left := cert.NotAfter.Sub(d.now); left < leastLife(d.vm, cert) {
			d.problems = append(d.problems, fmt.Sprintf("a certificate of the CA of %s expires at %s; renew it in Vault",
				d.vault.name, cert.NotAfter.UTC().Format(time.RFC3339)))
			break
		}
	}
	fingerprint := d.add(root, nil, snapshot.Ref{})
	d.roots[fingerprint].Secret = snapshot.Ref{} // Vault signs with it, even if its key is here too
	return fingerprint
}

// vaultSigns is the root that signs. While the Vault cannot be read, it is the one that did; after a restart, the one that is
// known, if there is no other.
func (d *decider) vaultSigns(read string) string {
	if read != "" {
		return read
	}
	if before := signer(d.before); d.roots[before] != nil {
		return before
	}
	if d.before == nil && len(d.roots) == 1 {
		return slices.Collect(maps.Keys(d.roots))[0]
	}
	return ""
}

// vaultReader reads the CA certificates of a Vault, now and then.
type vaultReader struct {
	ca         *certificatesv1.VaultCA
	generation int64
	stop       context.CancelFunc
	// poked has room for one: it is read at once.
	poked chan struct{}

	mu   sync.Mutex
	last vaultRoot
}

// readVaults reads the Vaults that VirtualMeshes name, and no others: again when a VirtualMesh changes.
func (s *Store) readVaults(ctx context.Context, state *snapshot.State) {
	wanted := map[snapshot.Ref]bool{}
	for _, vm := range state.Input.Management.VirtualMeshes {
		ca, ref := vaultCA(vm), snapshot.RefOf(snapshot.VirtualMesh, vm)
		if ca == nil || !counts(state.Plan, ref) {
			continue
		}
		wanted[ref] = true
		r := s.vaults[ref]
		switch {
		case r == nil:
			s.vaults[ref] = s.readVault(ctx, ca, vm.Generation)
		case !reflect.DeepEqual(r.ca, ca):
			r.stop()
			s.vaults[ref] = s.readVault(ctx, ca, vm.Generation)
		case r.generation != vm.Generation:
			r.generation = vm.Generation
			select {
			case r.poked <- struct{}{}:
			default:
			}
		}
	}
	for ref, r := range maps.Clone(s.vaults) {
		if !wanted[ref] {
			r.stop()
			delete(s.vaults, ref)
		}
	}
}

// readVault starts a reader.
func (s *Store) readVault(ctx context.Context, ca *certificatesv1.VaultCA, generation int64) *vaultReader {
	ctx, stop := context.WithCancel(ctx)
	r := &vaultReader{
		ca: ca, generation: generation, stop: stop, poked: make(chan struct{}, 1),
		last: vaultRoot{name: "Vault " + ca.Server, pending: true},
	}
	s.group.Go(func() { defer stop(); r.run(ctx, s.wake) })
	return r
}

// run reads until ctx ends, and calls changed when something is new.
func (r *vaultReader) run(ctx context.Context, changed func()) {
	failures := 0
	for {
		if r.look(ctx) {
			changed()
		}
		pause := vaultEvery
		if failures++; r.said().problem == "" {
			failures = 0
		} else {
			pause = kube.Backoff(retryFirst, vaultEvery, failures)
		}
		timer := time.NewTimer(kube.Jitter(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.poked:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look reads once, and reports whether something is new.
func (r *vaultReader) look(ctx context.Context) bool {
	now := vaultRoot{name: r.said().name}
	var err error
	if broken := kube.Catch(func() { now.chain, err = readChain(ctx, r.ca) }); broken != nil {
		err = broken
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		now.chain, now.problem = nil, err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	same := !r.last.pending && r.last.problem == now.problem && slices.EqualFunc(r.last.chain, now.chain, (*x509.Certificate).Equal)
	r.last = now
	return !same
}

func (r *vaultReader) said() vaultRoot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func readChain(ctx context.Context, ca *certificatesv1.VaultCA) (pki.Chain, error) {
	ctx, cancel := context.WithTimeout(ctx, vaultTimeout)
	defer cancel()
	client, err := vault.New(ca)
	if err != nil {
		return nil, err
	}
	defer client.Close(ctx)
	return client.Chain(ctx)
}

// vaultOf is what the Vault of a VirtualMesh said last; nil if it has none.
func (s *Store) vaultOf(vm *networkingv1.VirtualMesh) *vaultRoot {
	r := s.vaults[snapshot.RefOf(snapshot.VirtualMesh, vm)]
	if r == nil {
		return nil
	}
	said := r.said()
	return &said
}
