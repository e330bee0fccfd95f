package issuer

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// backdate is for machines whose clocks are slow.
	backdate = time.Hour
	// maxCommonName is in bytes (X.520, upper bounds).
	maxCommonName = 64
)

// Reasons for refusals beside those of package pki.
const (
	// notAsked: no member of a VirtualMesh asks for it.
	notAsked pki.Reason = "NotAsked"
	// noRoot: the root that is to sign has no key here.
	noRoot pki.Reason = "NoRoot"
)

// Roots has the keys of roots.
type Roots interface {
	// Authority is what signs with a root of a VirtualMesh; nil if its key is not there.
	Authority(virtualMesh snapshot.Ref, fingerprint string) *pki.Authority
}

// job is one request to be answered.
type job struct {
	ref     snapshot.Ref
	request *certificatesv1.CertificateRequest
	// virtualMesh and grant are what the Plan has signed; grant is nil if that is nothing.
	virtualMesh snapshot.Ref
	grant       *snapshot.CertificateGrant
}

// asked is a member with its VirtualMesh.
type asked struct {
	virtualMesh snapshot.Ref
	grant       *snapshot.CertificateGrant
}

// askedFor are the members that the Plan asks for certificates, by the Ref of their
// IssuedCertificates.
func askedFor(plan *snapshot.Plan) map[snapshot.Ref]asked {
	out := map[snapshot.Ref]asked{}
	if plan == nil {
		return out
	}
	for _, vm := range plan.VirtualMeshes {
		if vm.Trust == nil {
			continue
		}
		for _, member := range vm.Trust.Members {
			if member.Spec != nil && member.Ref.Kind == snapshot.IssuedCertificate && member.Ref.Name != "" {
				out[member.Ref] = asked{vm.Ref, member.Grant}
			}
		}
	}
	return out
}

// jobsOf are the requests of a cluster that need an answer, in the order of the cluster's list.
func jobsOf(c *snapshot.Cluster, wanted map[snapshot.Ref]asked) []job {
	if c.Frozen() {
		return nil
	}
	var out []job
	for _, request := range c.CertificateRequests {
		if final(request) || request.DeletionTimestamp != nil {
			continue
		}
		ref := snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: c.Name, Namespace: request.Namespace, Name: request.Name}
		found, ok := wanted[ref]
		if !ok && has(c.IssuedCertificates, ref) || ok && found.grant == nil {
			continue // it waits, or the agent has a Vault sign and answers it
		}
		out = append(out, job{ref: ref, request: request, virtualMesh: found.virtualMesh, grant: found.grant})
	}
	return out
}

// has reports whether an IssuedCertificate is in a list.
func has(list []*certificatesv1.IssuedCertificate, ref snapshot.Ref) bool {
	return slices.ContainsFunc(list, func(o *certificatesv1.IssuedCertificate) bool {
		return o.Namespace == ref.Namespace && o.Name == ref.Name
	})
}

// final reports whether a request has its certificate.
func final(r *certificatesv1.CertificateRequest) bool {
	return r.Status.ObservedGeneration == r.Generation && r.Status.State == certificatesv1.CertificateRequestFinished &&
		len(r.Status.SignedCertificate) > 0
}

// answer is the status that a request is to have, and why it is refused, if it is. It signs,
// which takes milliseconds of CPU.
func (j *job) answer(roots Roots, now time.Time) (certificatesv1.CertificateRequestStatus, pki.Reason) {
	status := certificatesv1.CertificateRequestStatus{ObservedGeneration: j.request.Generation}
	issued, err := j.sign(roots, now)
	if err != nil {
		status.State, status.Error = certificatesv1.CertificateRequestFailed, err.Error()
		return status, reasonOf(err)
	}
	last := len(issued.Chain) - 1
	status.State = certificatesv1.CertificateRequestFinished
	status.SignedCertificate, status.SigningRootCa = issued.Chain[:last].PEM(), issued.Chain[last:].PEM()
	return status, ""
}

func (j *job) sign(roots Roots, now time.Time) (pki.Issued, error) {
	if j.grant == nil {
		return pki.Issued{}, j.unasked()
	}
	request, err := pki.ReadRequest(j.request.Spec.CertificateSigningRequest)
	if err != nil {
		return pki.Issued{}, err //nolint:wrapcheck // a whole sentence
	}
	authority := roots.Authority(j.virtualMesh, j.grant.Root)
	if authority == nil {
		return pki.Issued{}, j.rootless()
	}
	switch usage := j.grant.Usage; usage {
	case certificatesv1.TrustUsageCA:
		return authority.Sign(rand.Reader, now, request, j.granted()) //nolint:wrapcheck // a whole sentence
	case certificatesv1.TrustUsageGateway:
		return authority.SignLeaf(rand.Reader, now, request, j.granted()) //nolint:wrapcheck // a whole sentence
	default:
		return pki.Issued{}, &refusal{pki.Unsupported, fmt.Sprintf("a certificate for the usage %q cannot be signed; report it: the Plan asks for it", usage)}
	}
}

// granted is what the Plan lets the member have.
func (j *job) granted() pki.Grant {
	name := j.ref.Name
	return pki.Grant{
		Subject: pki.Subject{Organization: j.grant.Organization, CommonName: name[:min(len(name), maxCommonName)]},
		Hosts:   j.grant.Hosts, TrustDomains: j.grant.TrustDomains,
		Life: pki.Life{Lasts: time.Duration(j.grant.Days) * 24 * time.Hour, Backdate: backdate},
	}
}

// refusal is a reason and a sentence with the next step.
type refusal struct {
	reason pki.Reason
	text   string
}

func (r *refusal) Error() string { return r.text }

// reasonOf is why a request is refused.
func reasonOf(err error) pki.Reason {
	var r *refusal
	if errors.As(err, &r) {
		return r.reason
	}
	return cmp.Or(pki.ReasonOf(err), pki.Failed)
}

// unasked is the sentence of Gloo Mesh 1.x (behaviour.md, section 6.4), with a next step.
func (j *job) unasked() error {
	return &refusal{notAsked, fmt.Sprintf(
		"failed to find issued certificate matching certificate request: no VirtualMesh asks for a certificate %s/%s in cluster %s; "+
			"make the mesh a member of a VirtualMesh with mtlsConfig, or delete the request", j.ref.Namespace, j.ref.Name, j.ref.Cluster)}
}

func (j *job) rootless() error {
	root := j.grant.Root
	return &refusal{noRoot, fmt.Sprintf(
		"root %s of VirtualMesh %s/%s cannot sign: its private key is not on the management cluster; "+
			"put back the Secret that has it, or let another root sign", root[:min(len(root), 16)], j.virtualMesh.Namespace, j.virtualMesh.Name)}
}
