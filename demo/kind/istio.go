package kind

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
)

// rendered are the objects of Istio for a cluster called placeholder: what Istio's own installer
// makes of the settings of package manifests, and of those below. `go test ./demo/kind -run
// TestIstio -update` writes it.
//
//go:embed istio.yaml.gz
var rendered []byte

// placeholder stands for the name of the cluster.
const placeholder = "name-of-the-cluster"

// istioNamespace is that of Istio's control plane.
const istioNamespace = "istio-system"

// istioSettings are those of an Istio in a kind cluster: path=value, as in `istioctl install --set`.
func istioSettings() []string {
	return []string{
		"values.global.meshID=" + placeholder,
		"values.global.network=" + placeholder,
		"values.global.multiCluster.clusterName=" + placeholder,
		"meshConfig.trustDomain=" + placeholder + ".example",
		// Nothing assigns addresses to LoadBalancers, but nodes reach each other.
		"values.gateways.istio-ingressgateway.type=NodePort",
		// Extensions that Envoy only has as Istio builds it; the demo needs none of them, and its
		// requests are the same with any Envoy.
		"values.telemetry.enabled=false",
		"values.pilot.env.PILOT_ENABLE_METADATA_EXCHANGE=false",
		"values.pilot.env.PILOT_ENABLE_ALPN_FILTER=false",
		// Two clusters share a laptop.
		"values.pilot.resources.requests.cpu=50m",
		"values.pilot.resources.requests.memory=256Mi",
		"values.global.proxy.resources.requests.cpu=10m",
		"values.global.proxy.resources.requests.memory=64Mi",
		"values.global.proxy_init.resources.requests.cpu=10m",
		"values.gateways.istio-ingressgateway.resources.requests.cpu=10m",
		"values.gateways.istio-ingressgateway.resources.requests.memory=64Mi",
	}
}

// istioObjects are the objects of Istio for a cluster.
func istioObjects(cluster string) ([]*unstructured.Unstructured, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(rendered))
	if err != nil {
		return nil, fmt.Errorf("Istio's objects: %w", err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("Istio's objects: %w", err)
	}
	objects, err := kube.Decode(bytes.ReplaceAll(data, []byte(placeholder), []byte(cluster)))
	if err != nil {
		return nil, fmt.Errorf("Istio's objects: %w", err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": istioNamespace},
	}}
	return append([]*unstructured.Unstructured{namespace}, objects...), nil
}

// IstioImages are the images that Istio's pods need; the version of Istio is their tag.
func IstioImages() (images []string, version string, err error) {
	objects, err := istioObjects("any")
	if err != nil {
		return nil, "", err
	}
	return imagesOf(objects)
}

// InstallIstio installs Istio, and returns when it injects sidecars and its gateways run.
func (c *Cluster) InstallIstio(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		return err
	}
	objects, err := istioObjects(c.name)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	if err := client.Apply(ctx, objects...); err != nil {
		return err
	}
	if err := client.WaitDeployments(ctx, istioNamespace); err != nil {
		return err
	}
	return client.WaitWebhooks(ctx)
}

// imagesOf are the images of Istio's objects: those of its Deployments, of which one is of its
// control plane.
func imagesOf(objects []*unstructured.Unstructured) (images []string, version string, err error) {
	for _, o := range objects {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, ok := one.(map[string]any)
			if !ok {
				continue
			}
			if image, _ := container["image"].(string); !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	if len(images) == 0 {
		return nil, "", errors.New("Istio's objects: no Deployment has an image")
	}
	return images, images[0][strings.LastIndex(images[0], ":")+1:], nil
}
