package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// vaultTimeout bounds one attempt to have a request signed: a few requests.
	vaultTimeout = 45 * time.Second
	// vaultFirst and vaultLast are pauses after attempts that fail.
	vaultFirst = 5 * time.Second
	vaultLast  = time.Minute
	// notOutlive is by how much a certificate ends before those above it.
	notOutlive = time.Minute
)

// byVault: a Vault signs, not meshctl serve.
func (f *facts) byVault() bool {
	return f.certificate.Spec.AgentCa != nil && f.certificate.Spec.AgentCa.Vault != nil
}

// signerName is who signs, for messages.
func (r *request) signerName() string {
	if r.byVault() {
		return "Vault"
	}
	return "meshctl serve"
}

// forVault: the request is one that a Vault is to sign, and has not.
func (r *request) forVault() bool {
	if !r.byVault() || r.request == nil || r.privateKey.IsZero() || !r.requestServes() || r.request.Annotations[optionsAnnotation] != r.sum || r.inHand() {
		return false
	}
	status := r.request.Status
	return status.ObservedGeneration != r.request.Generation || status.State != certificatesv1.CertificateRequestFinished
}

// vaultCalls are the attempts to have requests signed: one of a mesh at a time, with pauses after failures. All of it may be
// lost.
type vaultCalls struct {
	// ctx is that of the attempts, which outlive the look at the mesh that they begin with, and end with the agent's term.
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	calls map[string]*vaultCall
}

type vaultCall struct {
	// of is what is asked for, and of whom: anything else is asked for at once.
	of       string
	busy     bool
	failures int
	again    time.Time
}

func newVaultCalls() *vaultCalls {
	ctx, cancel := context.WithCancel(context.Background())
	return &vaultCalls{ctx: ctx, cancel: cancel, calls: map[string]*vaultCall{}}
}

// stop ends all attempts.
func (v *vaultCalls) stop() {
	v.cancel()
	v.group.Wait()
}

// begin reports whether it is time for an attempt.
func (v *vaultCalls) begin(mesh, of string, now time.Time) (*vaultCall, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	call := v.calls[mesh]
	switch {
	case call != nil && call.busy:
		return nil, false
	case call == nil || call.of != of:
		call = &vaultCall{of: of}
		v.calls[mesh] = call
	case now.Before(call.again):
		return nil, false
	}
	call.busy = true
	return call, true
}

// end notes the result of an attempt.
func (v *vaultCalls) end(call *vaultCall, now time.Time, failed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	call.busy = false
	if call.failures++; !failed {
		call.failures = 0
	}
	// Also after a success: if the answer is not seen soon, somebody takes it away.
	call.again = now.Add(kube.Jitter(kube.Backoff(vaultFirst, vaultLast, max(call.failures, 1))))
}

// signByVault starts an attempt, unless one is under way or it is too early. The mesh does not wait for it: the answer goes
// into the status of the request, which is watched.
func (a *agent) signByVault(r *request) {
	of, err := json.Marshal([]any{r.request.UID, r.request.Generation, r.spec})
	if err != nil {
		return // it was read as JSON
	}
	call, ok := a.vaults.begin(r.name, string(of), a.options.Now())
	if !ok {
		return
	}
	a.vaults.group.Go(func() {
		ctx, cancel := context.WithTimeout(a.vaults.ctx, vaultTimeout)
		defer cancel()
		var err error
		if broken := kube.Catch(func() { err = a.askVault(ctx, r) }); broken != nil {
			a.options.Log.Error("Vault was not asked. This is a bug in meshctl, please report it", "mesh", r.name, "error", broken)
			err = broken
		}
		a.vaults.end(call, a.options.Now(), err != nil)
	})
}

// askVault has a request signed, and writes the answer into its status. The error says only that there is none that can be
// used: what it is has been reported.
func (a *agent) askVault(ctx context.Context, r *request) error {
	signed, err := a.signedByVault(ctx, r)
	if a.vaults.ctx.Err() != nil {
		return context.Canceled // the agent ends; that says nothing about Vault
	}
	status := certificatesv1.CertificateRequestStatus{ObservedGeneration: r.request.Generation}
	if err != nil {
		status.State, status.Error = certificatesv1.CertificateRequestFailed, err.Error()
		if before := r.request.Status; before.ObservedGeneration == status.ObservedGeneration && before.State == status.State && before.Error == status.Error {
			return err
		}
	} else {
		last := len(signed) - 1
		status.State = certificatesv1.CertificateRequestFinished
		status.SignedCertificate, status.SigningRootCa = signed[:last].PEM(), signed[last:].PEM()
		a.options.Log.Info("Vault signed a certificate", "mesh", r.name, "fingerprint", pki.Fingerprint(signed[0]), "expires", signed[0].NotAfter)
	}
	// An attempt that took all its time still reports.
	reporting, cancel := context.WithTimeout(a.vaults.ctx, vaultTimeout)
	defer cancel()
	if failed := a.store.putStatus(reporting, snapshot.CertificateRequest, r.request, status); failed != nil {
		a.options.Log.Warn("the answer of Vault was not written; it is asked again", "mesh", r.name, "error", failed)
		return failed
	}
	return err
}

// signedByVault is the certificate, and those above it up to the root that was asked for.
func (a *agent) signedByVault(ctx context.Context, r *request) (pki.Chain, error) {
	ca := r.spec.AgentCa.Vault
	if err := a.mayUseVault(r); err != nil {
		return nil, err
	}
	client, err := vault.New(ca)
	if err != nil {
		return nil, err
	}
	defer client.Close(ctx)
	above, err := client.Chain(ctx)
	if err != nil {
		return nil, err
	}
	ttl, err := r.life(client, above)
	if err != nil {
		return nil, err
	}
	if err := a.logIn(ctx, client, ca); err != nil {
		return nil, err
	}
	asked := vault.Request{
		CSR: r.request.Spec.CertificateSigningRequest, CommonName: r.name, Organization: organization(r.spec),
		TrustDomains: r.spec.Trust.TrustDomains, TTL: ttl,
	}
	for _, host := range sorted(r.spec.Hosts) {
		if strings.Contains(host, "://") {
			asked.Identities = append(asked.Identities, host)
		} else {
			asked.DNSNames = append(asked.DNSNames, host)
		}
	}
	text, err := client.Sign(ctx, asked)
	if err != nil {
		return nil, err
	}
	signed, err := r.verified(text)
	if err == nil {
		return signed, nil
	}
	if pki.ReasonOf(err) == pki.NotYetValid { // it can be used when the clocks agree
		return r.chainOf(text)
	}
	return nil, fmt.Errorf("the answer of %s cannot be used: %w", client, err)
}

// life is the life to ask for: a certificate that outlived those above it would fail before it was renewed. Before anything is
// signed, it is seen whether the CA is that of the root that was asked for.
func (r *request) life(client *vault.Client, above pki.Chain) (time.Duration, error) {
	if err := pki.Verify(above, pki.NewBundle(r.root), r.now, pki.Want{Usage: pki.ForCA}); err != nil {
		if pki.ReasonOf(err) == pki.UnknownRoot {
			return 0, fmt.Errorf("the CA of %s has the root %s, and the mesh is to have a certificate of the root %s; "+
				"after a change in Vault that takes until all members trust the new root, else check that meshctl serve reaches the same Vault",
				client, list([]string{pki.Fingerprint(above.Root())}), list([]string{pki.Fingerprint(r.root)}))
		}
		return 0, fmt.Errorf("the CA of %s cannot sign: %w", client, err)
	}
	days := uint32(certificatesv1.DefaultTtlDays)
	if o := r.spec.CertOptions; o != nil && o.TtlDays != 0 {
		days = o.TtlDays
	}
	lasts := time.Duration(days) * 24 * time.Hour
	for _, cert := range above {
		lasts = min(lasts, cert.NotAfter.Sub(r.now)-notOutlive)
	}
	if lasts <= 0 {
		return 0, fmt.Errorf("the CA of %s is about to expire; renew it in Vault", client)
	}
	return lasts, nil
}
