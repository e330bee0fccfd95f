package kube

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that a demo applies.
const fieldManager = "meshctl-demo"

// Client reads and writes objects of any kind on one API server. It is safe for
// concurrent use.
type Client struct {
	name      string
	dynamic   dynamic.Interface
	discovery discovery.DiscoveryInterface

	mu     sync.Mutex // the mapper resets itself, which is not safe for concurrent use
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// New returns a client for the cluster called name (used in errors).
func New(name string, config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	return &Client{
		name: name, dynamic: d, discovery: disco,
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)),
	}, nil
}

// Ready returns an error unless the API server is ready.
func (c *Client) Ready(ctx context.Context) error {
	err := c.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cluster %s: API server: %w", c.name, err)
	}
	return nil
}

// Get returns one object; namespace is empty for cluster-scoped kinds.
func (c *Client) Get(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	obj, err := c.dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return obj, nil
}

// List returns the objects of a kind in a namespace; an empty one means all.
func (c *Client) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: listing %s: %w", c.name, gvr.Resource, err)
	}
	return list.Items, nil
}

// Delete deletes an object; it is not an error if there is none.
func (c *Client) Delete(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error {
	err := c.dynamic.Resource(gvr).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cluster %s: deleting %s %s/%s: %w", c.name, gvr.Resource, namespace, name, err)
	}
	return nil
}

func (c *Client) resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	c.mu.Lock()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		// Another client may have defined the kind since the last discovery.
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %s: %w", c.name, describe(obj), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// known returns an error until the API server lists the kinds of a CRD, which is
// a moment after the CRD is established.
func (c *Client) known(definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range versions {
		version, ok := one.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		if _, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, fmt.Sprint(version["name"])); err != nil {
			c.mapper.Reset()
			return err
		}
	}
	return nil
}

func describe(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", obj.GetKind(), obj.GetName())
	}
	return fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
}
