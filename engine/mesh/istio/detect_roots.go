package istio

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// rootsName is the ConfigMap in which istiod writes the roots that proxies
	// trust (pilot/pkg/features, CACertConfigMapName). It is in all namespaces; only
	// the one beside the control plane is read, because others may change theirs.
	rootsName = "istio-ca-root-cert"
	rootsKey  = "root-cert.pem"
	// multiRoot has proxies trust the meshConfig.caCertificates, too
	// (pilot/pkg/features, MultiRootMesh).
	multiRoot = "ISTIO_MULTIROOT_MESH"
)

// Bounds of a bundle of roots.
const (
	// maxRootsText is in bytes; a ConfigMap may have a megabyte.
	maxRootsText = 64 << 10
	maxRoots     = 32
)

const pemBegin = "-----BEGIN "

// rootsOf are the fingerprints of the roots that the proxies of a control plane
// trust, ascending; nil if they are not known.
func rootsOf(x *discovery.Index, namespace string, pilot *corev1.Container, config settings, mesh snapshot.Ref) []string {
	cm, unread := x.ConfigMap(namespace, rootsName)
	if unread != nil {
		x.ReportUnread(*unread, mesh, "so the roots that the mesh trusts are those that are known of it, if any")
	}
	var stored []string
	if last := x.StoredMesh(mesh.Name, namespace); last != nil && last.Spec.Istio != nil {
		stored = last.Spec.Istio.RootFingerprints
	}
	if cm == nil {
		if unread != nil {
			return stored
		}
		return nil
	}
	text, found := cm.Data[rootsKey]
	if !found {
		return nil
	}
	roots, err := fingerprints(text)
	if err != nil {
		x.Report(snapshot.Issue{
			Code: snapshot.MeshUnreadable, Severity: snapshot.Warning, Target: mesh,
			Ref:     snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: x.Cluster, Namespace: namespace, Name: rootsName},
			Message: fmt.Sprintf("its key %q is not a bundle of root certificates (%v), so it is not known which roots the mesh trusts", rootsKey, err),
			Hint:    "delete it: the control plane writes it again; if that does not help, check root-cert.pem in its Secret cacerts",
		})
		return nil
	}
	if !isSet(pilot, multiRoot) {
		return sortedSet(roots)
	}
	if config.isStored && !slices.ContainsFunc(roots, func(root string) bool { return !slices.Contains(stored, root) }) {
		return stored // nothing shows that the others are not what they were
	}
	if config.remoteRoots || config.isStored {
		return nil
	}
	for _, text := range config.roots {
		// Istio skips what it cannot read.
		if more, err := fingerprints(text); err == nil {
			roots = append(roots, more...)
		}
	}
	return sortedSet(roots)
}

// fingerprints are the SHA-256 of the certificates in a PEM bundle, in hexadecimal
// digits. Text between the certificates is ignored, as in TLS libraries.
func fingerprints(text string) ([]string, error) {
	if len(text) > maxRootsText {
		return nil, fmt.Errorf("it has more than %d bytes", maxRootsText)
	}
	var out []string
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it contains a %.40q", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(out)+1, err)
		}
		if len(out) == maxRoots {
			return nil, fmt.Errorf("it has more than %d certificates", maxRoots)
		}
		sum := sha256.Sum256(block.Bytes)
		out = append(out, hex.EncodeToString(sum[:]))
	}
	if len(out) == 0 {
		return nil, errors.New("it has no certificate")
	}
	if len(out) != strings.Count(text, pemBegin) { // package pem skips what it cannot read
		return nil, errors.New("a certificate is damaged")
	}
	return out, nil
}
