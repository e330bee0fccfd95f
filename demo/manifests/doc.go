// Package manifests has the manifests that a demo applies: the settings of Istio,
// Open Service Mesh, the bookinfo application and the policies.
package manifests

import (
	"bytes"
	"context"
	"embed"
	"fmt"

	"github.com/meshctl/meshctl/demo/kube"
)

//go:embed *.yaml
var files embed.FS

// IstioOperator returns the settings from which Istio is rendered.
func IstioOperator() []byte { return read("istio-operator.yaml") }

// OSM returns the objects of Open Service Mesh, except for its CRDs.
func OSM() []byte { return read("osm.yaml") }

// ReadProxies returns what lets the account of meshctl serve, namespace and name, read what the proxies of its cluster count.
func ReadProxies(namespace, account string) []byte {
	text := bytes.ReplaceAll(read("read-proxies.yaml"), []byte("NAMESPACE"), []byte(namespace))
	return bytes.ReplaceAll(text, []byte("ACCOUNT"), []byte(account))
}

// Agent returns the pod of an agent in a namespace, which runs as a process in its network.
func Agent(namespace string) []byte {
	return bytes.ReplaceAll(read("agent.yaml"), []byte("NAMESPACE"), []byte(namespace))
}

// Bookinfo returns the application of one cluster: "cluster-1" or "cluster-2".
func Bookinfo(cluster string) ([]byte, error) {
	data, err := files.ReadFile("bookinfo-" + cluster + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("bookinfo is written for cluster-1 and cluster-2, not for %s: %w", cluster, err)
	}
	return data, nil
}

// InstallBookinfo applies the application of one cluster, and waits until all of
// its pods have sidecars.
func InstallBookinfo(ctx context.Context, client *kube.Client, cluster string) error {
	bookinfo, err := Bookinfo(cluster)
	if err != nil {
		return err
	}
	if err := client.ApplyYAML(ctx, bookinfo); err != nil {
		return err
	}
	return client.WaitInjected(ctx, "bookinfo")
}

// VirtualMesh returns the VirtualMesh that joins both clusters. It leaves their roots as they
// are.
func VirtualMesh() []byte { return read("virtual-mesh.yaml") }

// SharedVirtualMesh returns it with a common root, which agents give to the meshes, and a
// trust domain for each of them.
func SharedVirtualMesh() []byte {
	const federation = "  federation:\n"
	return bytes.Replace(VirtualMesh(), []byte(federation), []byte(`  mtlsConfig:
    autoRestartPods: true
    shared:
      rootCertificateAuthority:
        generated: {}
      trustDomainPerMesh: true
`+federation), 1)
}

// Policies returns the TrafficPolicy and the AccessPolicies.
func Policies() []byte { return read("policies.yaml") }

// read cannot fail: the name is a constant and the file is embedded.
func read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return data
}
