package kube

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Each yields all objects of the cluster, of the kinds that are wanted. What comes or goes meanwhile may
// be missing.
func (c *Client) Each(ctx context.Context, wanted func(schema.GroupVersionResource) bool, yield func(schema.GroupVersionResource, *unstructured.Unstructured)) error {
	kinds, err := discovery.ServerPreferredResources(c.discovery)
	if err != nil {
		return fmt.Errorf("cluster %s: listing the kinds: %w", c.name, err)
	}
	for _, list := range kinds {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.name, err)
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			kind := group.WithResource(resource.Name)
			if !slices.Contains(resource.Verbs, "list") || !wanted(kind) {
				continue
			}
			items, err := c.List(ctx, kind, "")
			if apierrors.IsNotFound(err) {
				continue // its type has just been deleted
			}
			if err != nil {
				return err
			}
			for j := range items {
				yield(kind, &items[j])
			}
		}
	}
	return nil
}
