package virtualmesh

import (
	"cmp"
	"slices"
	"strings"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// certificateSpec is what is asked of the agent of a member: a certificate of the root that
// signs, and that all workloads trust the roots.
func (t *trustPlanner) certificateSpec(m *trustee, signs *snapshot.Root, roots []*snapshot.Root) *certificatesv1.IssuedCertificateSpec {
	vm, member := t.plan.VirtualMesh, m.mesh
	mtls := vm.Spec.MtlsConfig
	ca := member.Dialect.CA
	_, installation := snapshot.MeshType(&member.Mesh.Spec)
	leaveOut, _ := snapshot.LeftOut(vm.Annotations[snapshot.TrustLeaveOutAnnotation], member.Cluster)
	spec := &certificatesv1.IssuedCertificateSpec{
		Hosts:                   []string{member.Dialect.Principal(member.TrustDomain, member.Namespace, ca.Account(&member.Mesh.Spec))},
		Org:                     member.Dialect.Name,
		IssuedCertificateSecret: &commonv1.ObjectRef{Name: ca.Secret, Namespace: member.Namespace},
		CertOptions:             intermediateOptions(mtls.Shared.IntermediateCertOptions, member.Dialect.Name),
		Trust: &certificatesv1.TrustRequest{
			Root: signs.Fingerprint, Bundle: bundle(roots), ReplaceUserSecret: mtls.ReplaceUserCertificates,
			ControlPlane:     installation.PodLabels,
			NamespaceTimeout: namespaceTimeout(t.settings), LeaveOut: leaveOut[:min(len(leaveOut), maxLeftOut)],
		},
	}
	switch vault := vaultCA(vm); {
	case signs.Secret != (snapshot.Ref{}): // also after a change to a Vault, until all trust its root
		secret := commonv1.ObjectRef{Name: signs.Secret.Name, Namespace: signs.Secret.Namespace}
		spec.SigningCertificateSecret = &secret
		spec.GlooMeshCa = &certificatesv1.GlooMeshCA{SigningCertificateSecret: &secret}
	case vault != nil:
		spec.AgentCa = &certificatesv1.AgentCA{Vault: vault}
	}
	if mtls.AutoRestartPods {
		spec.PodBounceDirective = &commonv1.ObjectRef{Name: member.Ref.Name, Namespace: m.facts.agents}
	}
	return spec
}

// maxLeftOut bounds the namespaces that are named to an agent; the API has the same bound.
const maxLeftOut = 1000

// grantOf is what the issuer signs for a spec that was made here; nil if a Vault signs.
func grantOf(spec *certificatesv1.IssuedCertificateSpec) *snapshot.CertificateGrant {
	if spec.AgentCa != nil {
		return nil
	}
	return &snapshot.CertificateGrant{
		Usage: spec.Trust.Usage, Root: spec.Trust.Root, Hosts: spec.Hosts, TrustDomains: spec.Trust.TrustDomains,
		Organization: cmp.Or(spec.CertOptions.OrgName, spec.Org), Days: spec.CertOptions.TtlDays,
	}
}

// vaultCA is the Vault that signs for a VirtualMesh; nil if none does.
func vaultCA(vm *networkingv1.VirtualMesh) *certificatesv1.VaultCA {
	mtls := vm.Spec.MtlsConfig
	if mtls == nil || mtls.Shared == nil || mtls.Shared.IntermediateCertificateAuthority == nil {
		return nil
	}
	return mtls.Shared.IntermediateCertificateAuthority.Vault
}

// intermediateOptions are the options of intermediates with their defaults. Organization is the name of the kind of mesh.
func intermediateOptions(asked *certificatesv1.CommonCertOptions, organization string) *certificatesv1.CommonCertOptions {
	out := certificatesv1.CommonCertOptions{}
	if asked != nil {
		out = *asked
	}
	out.OrgName = cmp.Or(out.OrgName, organization)
	out.TtlDays = cmp.Or(out.TtlDays, certificatesv1.DefaultTtlDays)
	out.RsaKeySizeBytes = cmp.Or(out.RsaKeySizeBytes, certificatesv1.DefaultRsaKeySizeBits)
	out.SecretRotationGracePeriodRatio = cmp.Or(out.SecretRotationGracePeriodRatio, certificatesv1.DefaultSecretRotationGracePeriodRatio)
	return &out
}

// bundle is the text of roots, which are ascending by fingerprint: the same set is the same
// text.
func bundle(roots []*snapshot.Root) string {
	var out strings.Builder
	for _, root := range roots {
		out.WriteString(strings.TrimRight(root.PEM, "\n"))
		out.WriteByte('\n')
	}
	return out.String()
}

// restarts lists what the agent of a member may restart, in this order: the control plane,
// the gateways that other clusters connect to, and what else has a proxy, by namespace.
// Revisions of one control plane share a CA, so that the workloads of all count.
func (t *trustPlanner) restarts(member *snapshot.MeshPlan) *certificatesv1.PodBounceDirectiveSpec {
	ca := member.Dialect.CA
	_, installation := snapshot.MeshType(&member.Mesh.Spec)
	sync := func(namespace string) *certificatesv1.RootCertSync {
		return &certificatesv1.RootCertSync{
			SecretRef: commonv1.ObjectRef{Name: ca.Secret, Namespace: member.Namespace}, SecretKey: ca.Key,
			ConfigMapRef: commonv1.ObjectRef{Name: ca.ConfigMap, Namespace: namespace}, ConfigMapKey: ca.Key,
		}
	}
	out := []certificatesv1.PodSelector{{
		Namespace: member.Namespace, Labels: installation.PodLabels, WaitForReplicas: 1,
	}}
	for _, gw := range member.Gateways {
		if gw.Service.Cluster == member.Cluster && len(gw.Selector) > 0 {
			out = append(out, certificatesv1.PodSelector{
				Namespace: gw.Service.Namespace, Labels: gw.Selector, WaitForReplicas: 1, RootCertSync: sync(gw.Service.Namespace),
			})
		}
	}
	var namespaces []string
	for _, w := range t.inv.Workloads {
		if w.Spec.Kubernetes == nil || w.Spec.Kubernetes.DataPlaneMode.IsAmbient() { // ztunnel has their certificates
			continue
		}
		if mesh := t.meshes[w.Spec.Mesh]; mesh != nil && mesh.Cluster == member.Cluster && mesh.Namespace == member.Namespace {
			namespaces = append(namespaces, w.Spec.Kubernetes.Controller.Namespace)
		}
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		out = append(out, certificatesv1.PodSelector{Namespace: namespace, RootCertSync: sync(namespace)})
	}
	return &certificatesv1.PodBounceDirectiveSpec{PodsToBounce: out}
}
