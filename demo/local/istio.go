package local

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
)

const (
	istioNamespace   = "istio-system"
	injectorWebhook  = "istio-sidecar-injector"
	validatorWebhook = "istio-validator-istio-system"
)

// IstioOptions are the differences between the Istio installations of a demo.
type IstioOptions struct {
	// TrustDomain is meshConfig.trustDomain; empty means Istio's own default.
	TrustDomain string
	// Set are more settings, path=value, as in `istioctl install --set`.
	Set []string
	// GatewaysLater leaves the gateways without pods, until StartGateways.
	GatewaysLater bool
}

// InstallIstio applies the objects that Istio's own installer renders, starts
// istiod outside the cluster, and returns when istiod injects sidecars and
// validates objects, and the gateways have an address.
func (c *Cluster) InstallIstio(ctx context.Context, opts IstioOptions) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		return err
	}
	objects, err := istioOn(c).renderIstio(ctx, opts)
	if err != nil {
		return err
	}
	if opts.GatewaysLater {
		for _, obj := range gateways(objects) {
			if err := unstructured.SetNestedField(obj.Object, int64(0), "spec", "replicas"); err != nil {
				return err
			}
		}
	}
	return c.onFreePorts(func() error { return istioOn(c).startIstio(ctx, client, objects) })
}

// gateways are the Deployments of objects that are not istiod.
func gateways(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != "Deployment" || obj.GetName() == Istiod
	})
}

// StartGateways gives each gateway of a cluster that has no pod one.
func StartGateways(ctx context.Context, c *Cluster) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	found, err := client.List(ctx, kube.Deployments(), istioNamespace)
	if err != nil {
		return err
	}
	for i := range found {
		obj := &found[i]
		replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		if obj.GetName() == Istiod || replicas > 0 {
			continue
		}
		if err := unstructured.SetNestedField(obj.Object, int64(1), "spec", "replicas"); err != nil {
			return err
		}
		// Without a version, and without who wrote which field: it is applied.
		obj.SetManagedFields(nil)
		obj.SetResourceVersion("")
		if err := client.Apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// istioInstall installs Istio in a cluster.
type istioInstall struct{ *Cluster }

func istioOn(c *Cluster) istioInstall { return istioInstall{c} }

func (c istioInstall) startIstio(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) error {
	applied := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		obj = obj.DeepCopy()
		if err := c.pointWebhooksAtProcess(obj); err != nil {
			return err
		}
		applied = append(applied, obj)
	}
	if err := client.Apply(ctx, applied...); err != nil {
		return err
	}
	if err := c.run(ctx, Istiod, linesFor(c.Cluster).istiodEnv(), linesFor(c.Cluster).istiodArgs()...); err != nil {
		return err
	}
	if err := c.assignAddresses(ctx, client, objects); err != nil {
		return err
	}
	if err := readinessOf(c.Cluster).waitIstiod(ctx); err != nil {
		return err
	}
	return client.WaitWebhooks(ctx)
}

func (c istioInstall) renderIstio(ctx context.Context, opts IstioOptions) ([]*unstructured.Unstructured, error) {
	args := []string{
		"istio-manifests", "-",
		"values.global.meshID=" + c.Name(),
		"values.global.network=" + c.Name(),
		"values.global.multiCluster.clusterName=" + c.Name(),
	}
	if c.state.RealProxies { // as in the process
		args = append(args, "values.pilot.env.PILOT_ENABLE_METADATA_EXCHANGE=false", "values.pilot.env.PILOT_ENABLE_ALPN_FILTER=false")
	}
	if opts.TrustDomain != "" {
		args = append(args, "meshConfig.trustDomain="+opts.TrustDomain)
	}
	out, err := c.helperOutput(ctx, manifests.IstioOperator(), append(args, opts.Set...)...)
	if err != nil {
		return nil, err
	}
	objects, err := kube.Decode(out)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: Istio's manifests: %w", c.Name(), err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": istioNamespace},
	}}
	return append([]*unstructured.Unstructured{namespace}, objects...), nil
}

// pointWebhooksAtProcess replaces the Service of a webhook by the URL of the
// istiod process, because no pod serves it. istiod sets the CA.
func (c istioInstall) pointWebhooksAtProcess(obj *unstructured.Unstructured) error {
	if kind := obj.GetKind(); kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil
	}
	webhooks, _, err := unstructured.NestedSlice(obj.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("cluster %s: %s %s: %w", c.Name(), obj.GetKind(), obj.GetName(), err)
	}
	for _, webhook := range webhooks {
		config, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("cluster %s: %s %s: a webhook is not an object", c.Name(), obj.GetKind(), obj.GetName())
		}
		path, _, err := unstructured.NestedString(config, "clientConfig", "service", "path")
		if err != nil {
			return fmt.Errorf("cluster %s: %s %s: %w", c.Name(), obj.GetKind(), obj.GetName(), err)
		}
		config["clientConfig"] = map[string]any{
			"url": "https://localhost:" + strconv.Itoa(c.port("istiod-https")) + path,
		}
	}
	return unstructured.SetNestedSlice(obj.Object, webhooks, "webhooks")
}

// assignAddresses does the work of a load balancer: each Service of that type gets
// an address from the range for documentation (RFC 5737), which is never routed.
func (c istioInstall) assignAddresses(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) error {
	given := 0
	for _, obj := range objects {
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
		if obj.GetKind() != "Service" || kind != "LoadBalancer" {
			continue
		}
		given++
		ip := fmt.Sprintf("192.0.2.%d", c.state.Index*16+given)
		if err := client.ApplyStatus(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"namespace": obj.GetNamespace(), "name": obj.GetName()},
			"status":   map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": ip}}}},
		}}); err != nil {
			return err
		}
	}
	return nil
}
