package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// Options of an agent.
type Options struct {
	// Config reaches the API server of the agent's cluster.
	Config *rest.Config
	// Namespace is the agent's own: that of the IssuedCertificates.
	Namespace string
	// HealthBind is the address of /healthz, /readyz and /metrics; empty serves none.
	HealthBind string
	// VaultServers are the Vaults that a VirtualMesh may name, as vault.ParseServer has them: the administrator of the
	// cluster allowed them. No other gets a request, or one without TLS that is not here.
	VaultServers []string
	// VaultAudience is that of the tokens that log in to a Vault, and the only one they have; snapshot.VaultAudience if empty.
	VaultAudience string
	// Verifier says what the mesh holds. Without one the agent hands out roots, but puts no certificate of a new root to use.
	Verifier Verifier
	// Restarter restarts pods. Without one nothing is restarted, and control planes get what their Secret has in time, not at once.
	Restarter Restarter
	// Log is required.
	Log *slog.Logger
	// Resync is the longest time between two looks at everything; a minute if zero.
	Resync time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Identity tells the processes apart that want the Lease; the host's name and a random part if empty.
	Identity string
	// Unready says why something that runs beside the agent in this process is not ready; empty if it is. Nil if there is nothing.
	Unready func() string
	// Collector has its metrics; nil if there are none.
	Collector prometheus.Collector
	// Leading runs beside the agent while it holds the Lease, until its context ends; nil runs nothing. Its error ends the agent.
	Leading func(context.Context) error
	// OnListen is called with the address of the health endpoints.
	OnListen func(address string)

	// tokens is the folder with the tokens of service accounts; that of Kubernetes if empty.
	tokens string
	// newKey makes the keys; RSA keys if nil.
	newKey func(bits int) (pki.Key, error)
	// leaveAfter is how long an IssuedCertificate is gone before its mesh leaves.
	leaveAfter time.Duration
	// settleAfter is how long after a change of their Secret gateways are taken to have loaded it.
	settleAfter time.Duration
}

// Verifier says what the mesh of a control plane holds now.
type Verifier interface {
	// Look reports on the mesh in a namespace. An error says that it cannot be seen; then no signer is exchanged and no root
	// dropped.
	Look(ctx context.Context, mesh MeshTarget) (MeshState, error)
}

// MeshTarget is the mesh that is to be looked at.
type MeshTarget struct {
	// Name is that of the Mesh and of its IssuedCertificate.
	Name string
	// Namespace of the control plane, and Labels of its pods.
	Namespace string
	Labels    map[string]string
	// Issuer is the chain of the certificate in the Secret cacerts, and Roots are the roots there; empty if there is no
	// usable Secret.
	Issuer pki.Chain
	Roots  pki.Bundle
	// UID is that of the Secret, Data what it has, with its key, and Written is when it was written last, by the agent's
	// clock; zero if that is not known.
	UID     types.UID
	Data    map[string][]byte
	Written time.Time
	// Requested are the roots that all workloads are to trust, and Root is the fingerprint of the one that is to sign; empty
	// while the mesh leaves.
	Requested pki.Bundle
	Root      string
	// Earlier is what the last report said, or the last look saw; nil if there was none.
	Earlier *certificatesv1.TrustReport
	// Skew is by how much the agent's clock is ahead of the API server's.
	Skew time.Duration
	// NamespaceTimeout and LeaveOut are described at certificatesv1.TrustRequest.
	NamespaceTimeout time.Duration
	LeaveOut         []string
}

// MeshState is what the mesh holds. All but the last fields are described at certificatesv1.TrustReport.
type MeshState struct {
	ControlPlane, Namespaces, Trusting, Presenting certificatesv1.TrustProgress

	Trusted, Presented []string

	Signing   *certificatesv1.RootSince
	HandedOut []certificatesv1.RootSince
	Behind    []certificatesv1.NamespaceBehind
	// Known are the certificates of roots that were seen, as far as the agent could not know them otherwise.
	Known pki.Bundle
	// MultiRoot: istiod takes changed roots without a restart.
	MultiRoot bool
	// NeedsControlPlane: a restart of the control plane would help. NeedsWorkloads: one of workloads would that are
	// waited for.
	NeedsControlPlane, NeedsWorkloads bool
}

// empty: there is nobody who could be cut off.
func (s *MeshState) empty() bool {
	return s.ControlPlane.Total == 0 && s.Trusting.Total == 0 && s.Presenting.Total == 0 && len(s.Presented) == 0
}

// Restarter restarts the pods of a directive, and has those of control planes get their Secret.
type Restarter interface {
	// Restart does the next step, and saves the status of the directive; save is nil if it is not stored. It returns what it
	// waits for as a sentence; empty if for nothing.
	Restart(ctx context.Context, directive *certificatesv1.PodBounceDirective, target MeshTarget, state MeshState,
		save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error) (waiting string, err error)
	// Refresh has the pods of the control plane get what the Secret has now, if that is waited for, and else leaves nothing of it
	// on the pods. It returns before they have it; an error of which apierrors.IsForbidden is true says that it may not be asked for.
	Refresh(ctx context.Context, mesh MeshTarget, waits bool) error
}

// blind is the Verifier of an agent without one.
type blind struct{}

func (blind) Look(context.Context, MeshTarget) (MeshState, error) {
	return MeshState{}, errors.New("this agent cannot see what workloads hold; run one of a version that can")
}
