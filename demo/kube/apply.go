package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// applyParallel bounds the requests in flight on one API server.
const applyParallel = 16

// Decode reads YAML documents; empty ones are skipped.
func Decode(documents []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	var objects []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		if len(obj.Object) > 0 {
			objects = append(objects, obj)
		}
	}
}

// ApplyYAML applies YAML documents (Apply).
func (c *Client) ApplyYAML(ctx context.Context, documents []byte) error {
	objects, err := Decode(documents)
	if err != nil {
		return err
	}
	return c.Apply(ctx, objects...)
}

// DeleteYAML deletes the objects of YAML documents, the last one first; those that do
// not exist are skipped.
func (c *Client) DeleteYAML(ctx context.Context, documents []byte) error {
	objects, err := Decode(documents)
	if err != nil {
		return err
	}
	for _, obj := range slices.Backward(objects) {
		resource, err := c.resource(obj)
		if err != nil {
			return err
		}
		if err := resource.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cluster %s: deleting %s: %w", c.name, describe(obj), err)
		}
	}
	return nil
}

// Apply writes the objects by server-side apply, taking over fields that
// others set. What other objects need to be accepted is applied first, see stages;
// the objects of a stage are applied in parallel.
func (c *Client) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, stage := range stages(objects) {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(applyParallel)
		for _, obj := range stage {
			group.Go(func() error { return c.applyOne(ctx, obj) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// stages are the objects by when they can be applied: Namespaces, then CRDs, then
// ServiceAccounts, without which the API server rejects Pods, then the rest.
func stages(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	first := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount"}
	out := make([][]*unstructured.Unstructured, len(first)+1)
	for _, obj := range objects {
		stage := slices.Index(first, obj.GetKind())
		if stage < 0 {
			stage = len(first)
		}
		out[stage] = append(out[stage], obj)
	}
	return out
}

func (c *Client) applyOne(ctx context.Context, obj *unstructured.Unstructured) error {
	resource, err := c.resource(obj)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("cluster %s: applying %s: %w", c.name, describe(obj), err)
	}
	if obj.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return Until(ctx, fmt.Sprintf("cluster %s: %s", c.name, describe(obj)), func(ctx context.Context) error {
		seen, err := resource.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !Condition(seen, "Established") {
			return errors.New("not established yet")
		}
		return c.known(seen)
	})
}

// ApplyStatus writes the status of an object by server-side apply.
func (c *Client) ApplyStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	resource, err := c.resource(obj)
	if err != nil {
		return err
	}
	_, err = resource.ApplyStatus(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("cluster %s: applying the status of %s: %w", c.name, describe(obj), err)
	}
	return nil
}

// Condition reports whether status.conditions has kind with status True.
func Condition(obj *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}
