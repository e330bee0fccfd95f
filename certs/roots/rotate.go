package roots

import (
	"cmp"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"math"
	"time"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const day = 24 * time.Hour

// clockSkew is how far a time that a user wrote may be in the future: clocks differ.
const clockSkew = 5 * time.Minute

// maxRoots is how many roots a VirtualMesh may have before none is generated any more: a
// rotation that never ends must not fill the bundle that all workloads are given.
const maxRoots = 8

// order is a root to be made.
type order struct {
	name string
	// cause is why, for people; rotate the value of the annotation, if that is why.
	cause, rotate string
	options       certificatesv1.CommonCertOptions
}

// gatewayOrg is the organization of roots for gateways, which tells them from shared ones.
const gatewayOrg = certificatesv1.DefaultOrgName + "-gateways"

// forGateways reports whether a root was made for gateways.
func forGateways(root *x509.Certificate) bool {
	return len(root.Subject.Organization) == 1 && root.Subject.Organization[0] == gatewayOrg
}

// generatedOptions are the options of a generated root with their defaults.
func generatedOptions(vm *networkingv1.VirtualMesh) certificatesv1.CommonCertOptions {
	out := certificatesv1.CommonCertOptions{}
	if ca := vm.Spec.MtlsConfig.Issued().RootCertificateAuthority; ca != nil && ca.Generated != nil {
		out = *ca.Generated
	}
	if vm.Spec.MtlsConfig.Limited != nil {
		out.OrgName = gatewayOrg
	}
	out.OrgName = cmp.Or(out.OrgName, certificatesv1.DefaultOrgName)
	out.TtlDays = cmp.Or(out.TtlDays, certificatesv1.DefaultTtlDays)
	out.RsaKeySizeBytes = cmp.Or(out.RsaKeySizeBytes, certificatesv1.DefaultRsaKeySizeBits)
	out.SecretRotationGracePeriodRatio = cmp.Or(out.SecretRotationGracePeriodRatio, certificatesv1.DefaultSecretRotationGracePeriodRatio)
	return out
}

// rotateAsked reads the annotation that asks for a new root. Problem is what is wrong with it.
func rotateAsked(vm *networkingv1.VirtualMesh, now time.Time) (at time.Time, problem string) {
	value, ok := vm.Annotations[snapshot.TrustRotateAnnotation]
	if !ok {
		return time.Time{}, ""
	}
	const next = "; set it to the time now, for example $(date -u +%Y-%m-%dT%H:%M:%SZ), or remove it"
	at, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return time.Time{}, fmt.Sprintf("annotation %s=%.64q is not a time as in RFC 3339", snapshot.TrustRotateAnnotation, value) + next
	case at.After(now.Add(clockSkew)):
		return time.Time{}, fmt.Sprintf("annotation %s=%s is in the future", snapshot.TrustRotateAnnotation, value) + next
	}
	return at, ""
}

// due says why a generated root is to be followed by another; empty if it is not.
func due(vm *networkingv1.VirtualMesh, newest *stored, now time.Time) string {
	options := generatedOptions(vm)
	if newest.ours {
		if cause := differs(newest.root, options); cause != "" {
			return cause
		}
	}
	if left := newest.root.NotAfter.Sub(now); left < leastLife(vm, newest.root) {
		return fmt.Sprintf("the one before expires at %s", newest.root.NotAfter.UTC().Format(time.RFC3339))
	}
	return ""
}

// differs says in which option a root differs from what is asked for. It follows from the
// certificate, which also tells of one that Gloo Mesh 1.x has made.
func differs(root *x509.Certificate, o certificatesv1.CommonCertOptions) string {
	if len(root.Subject.Organization) != 1 || root.Subject.Organization[0] != o.OrgName {
		return fmt.Sprintf("orgName is to be %.64q", o.OrgName)
	}
	key, ok := root.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() != int(o.RsaKeySizeBytes) {
		return fmt.Sprintf("rsaKeySizeBytes is to be %d", o.RsaKeySizeBytes)
	}
	// A backdated life is some hours longer.
	if days := int(math.Floor(root.NotAfter.Sub(root.NotBefore).Hours() / 24)); days != int(o.TtlDays) {
		return fmt.Sprintf("ttlDays is to be %d", o.TtlDays)
	}
	return ""
}

// leastLife is how much of its life a root must have left, or another is made: the share that
// secretRotationGracePeriodRatio says, and so much that an intermediate lives twice as long as
// the share of its own life at which it is renewed. A new root always has enough.
func leastLife(vm *networkingv1.VirtualMesh, root *x509.Certificate) time.Duration {
	life := root.NotAfter.Sub(root.NotBefore)
	least := share(life, generatedOptions(vm).SecretRotationGracePeriodRatio, 0.9)
	ttl, ratio := uint32(certificatesv1.DefaultTtlDays), certificatesv1.DefaultSecretRotationGracePeriodRatio
	if o := vm.Spec.MtlsConfig.Issued().IntermediateCertOptions; o != nil {
		ttl, ratio = cmp.Or(o.TtlDays, ttl), cmp.Or(o.SecretRotationGracePeriodRatio, ratio)
	}
	intermediate := min(time.Duration(ttl)*day, life)
	return max(least, min(share(intermediate, 2*ratio, 1), life/2))
}

// share is a part of a life, at most the largest part.
func share(life time.Duration, ratio, most float64) time.Duration {
	return time.Duration(min(max(ratio, 0), most) * float64(life))
}
