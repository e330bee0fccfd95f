package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// inClusterServer is the API server of a cluster as its pods reach it. Its certificate covers the
// name (kubernetes.io: Accessing the Kubernetes API from a Pod).
const inClusterServer = "https://kubernetes.default.svc"

// servesInside reports whether serve runs in the management cluster: the Deployment that Install
// writes is there, and is to have pods.
func (s *server) servesInside(ctx context.Context, namespace string) (bool, error) {
	installed, err := s.installedServer(ctx, namespace)
	return installed != nil && installed.Replicas > 0, err
}

// findInside is findEndpoint for a serve that runs in the management cluster: what the caller can
// dial is not what serve's pods can dial.
func (r endpointFinder) findInside(ctx context.Context) error {
	own, err := ownEndpoint(onThisMachine(r.RemoteConfig))
	if err != nil {
		return err
	}
	address := r.APIServerAddress
	if address == "" && isLoopback(hostOf("", own.Server)) {
		address = r.keptAddress(ctx, own)
	}
	stored := own
	if address != "" {
		if stored, err = moved(own, address); err != nil {
			return err
		}
	}
	host, itself := hostOf("", stored.Server), r.remote.uid == r.management.uid
	switch {
	case itself && (isLoopback(host) || isInCluster(host)):
		r.report.note(fmt.Sprintf("this is the management cluster, in which serve runs: serve reaches it at %s, so this address is stored instead of %s",
			inClusterServer, r.RemoteConfig.Host))
		return r.storeUnseen(ctx, own, &cluster.Credential{Server: inClusterServer, CA: own.CA})
	case isInCluster(host):
		return &AddressError{Address: stored.Server, Context: r.RemoteContext, Deployment: r.deployment(),
			Reason: "for them, that is the management cluster", Next: adviseAddress(r.RemoteContext, r.RemoteConfig.Host)}
	case isLoopback(host):
		return &AddressError{Address: stored.Server, Context: r.RemoteContext, Deployment: r.deployment(),
			Reason: "it stands for the machine of whoever uses it", Next: adviseAddress(r.RemoteContext, r.RemoteConfig.Host)}
	}
	reached, err := r.dialStored(ctx, own, stored)
	if err == nil || reached || address == "" || ctx.Err() != nil {
		return err
	}
	r.report.note(fmt.Sprintf("%s cannot be reached from here, so this was not checked: serve runs in the management cluster, and will tell whether it reaches it", stored.Server))
	return r.storeUnseen(ctx, own, stored)
}

// storeUnseen stores an address that the caller cannot dial. What can be checked on the caller's own
// way is: the certificate.
func (r endpointFinder) storeUnseen(ctx context.Context, own, stored *cluster.Credential) error {
	r.endpoint, r.dialled = stored, own
	named := *own
	named.ServerName = hostOf("", stored.Server)
	_, err := r.handshake(ctx, &named)
	var wrongName x509.HostnameError
	if errors.As(err, &wrongName) {
		r.expectName(own)
		_, err = r.handshake(ctx, own)
	}
	if err != nil {
		return &UnreachableError{Server: r.remote.label, Err: err}
	}
	return nil
}

// keptAddress is the address with which the cluster is registered already; empty if it is not, or
// with one that pods cannot reach.
func (r endpointFinder) keptAddress(ctx context.Context, own *cluster.Credential) string {
	secret, err := storedSecret(ctx, r.management.clientset, r.MgmtNamespace, r.Name)
	if err != nil || secret == nil || secret.Annotations[cluster.UIDAnnotation] != string(r.remote.uid) {
		return "" // the right to read it is asked for later
	}
	address := storedAddress(secret, own.Server)
	if host, _, err := net.SplitHostPort(address); err != nil || isLoopback(host) || isInCluster(host) {
		return ""
	}
	r.report.note(fmt.Sprintf("serve runs in the management cluster and cannot reach %s; the address that is stored already, %s, is kept", r.RemoteConfig.Host, address))
	return address
}

func (r endpointFinder) deployment() string { return r.MgmtNamespace + "/" + ServeName }

// isInCluster reports whether a host is the API server of the cluster of the pod that asks.
func isInCluster(host string) bool {
	return slices.Contains([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		strings.ToLower(strings.TrimSuffix(host, ".")))
}

// onThisMachine is a configuration with an address that can be dialled: 0.0.0.0, which k3d writes,
// stands for this machine.
func onThisMachine(config *rest.Config) *rest.Config {
	u, err := url.Parse(config.Host)
	if err != nil {
		return config
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !addr.IsUnspecified() {
		return config
	}
	config = rest.CopyConfig(config)
	config.ServerName = hostOf(config.ServerName, config.Host)
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if addr.Is6() {
		loopback = netip.IPv6Loopback()
	}
	u.Host = net.JoinHostPort(loopback.String(), u.Port())
	config.Host = u.String()
	return config
}

// adviseAddress says which address to give for a cluster that runs on the caller's machine.
func adviseAddress(kubeContext, server string) string {
	name, isKind := strings.CutPrefix(kubeContext, "kind-")
	u, err := url.Parse(server)
	switch {
	case isKind && name != "":
		return fmt.Sprintf("use --api-server-address %s-control-plane:6443: the nodes of kind clusters reach each other by that name", name)
	case kubeContext == "minikube", kubeContext != "" && err == nil && u.Port() == "8443":
		return fmt.Sprintf("use --api-server-address $(minikube -p %s ip):8443", kubeContext)
	}
	return "use --api-server-address HOST[:PORT] with an address of its API server that they reach"
}

// AddressError says that serve's pods cannot use an address. Nothing was written.
type AddressError struct {
	// Address is a URL, and Context the context that it is of; optional.
	Address, Context string
	// Deployment is NAMESPACE/NAME of that of serve.
	Deployment string
	// Reason says why, and Next what to do.
	Reason, Next string
}

func (e *AddressError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *AddressError) Advice() (what, hint string) {
	of := ""
	if e.Context != "" {
		of = fmt.Sprintf(" (of context %q)", e.Context)
	}
	return fmt.Sprintf("%s%s does not lead the pods of meshctl serve to the cluster: %s, and serve runs in the management cluster (Deployment %s)",
		e.Address, of, e.Reason, e.Deployment), e.Next
}
