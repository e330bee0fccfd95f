package edit

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

type object = unstructured.Unstructured

// typed is the object with its Go type.
func (d *document) typed(kind snapshot.Kind) (snapshot.APIObject, error) {
	typed := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.object.Object, typed); err != nil {
		return nil, fmt.Errorf("%s: %w", create.Title(d.object), err)
	}
	return typed, nil
}

// untyped is an object as JSON has it.
func untyped(stored snapshot.APIObject, kind snapshot.Kind) (*object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, stored.GetName(), err)
	}
	out := &object{Object: content}
	info := kind.Info()
	out.SetAPIVersion(info.GroupVersion().String())
	out.SetKind(info.Kind)
	return out, nil
}

// resource is where objects of the kind are written.
func (o *Options) resource(namespace string) (dynamic.ResourceInterface, error) {
	config, err := o.Kube.Config(o.Factory)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	return client.Resource(o.Form.Kind.GroupVersionResource()).Namespace(namespace), nil
}

// get reads the object with all that the server has about it.
func (o *Options) get(ctx context.Context, ref snapshot.Ref) (*object, error) {
	resource, err := o.resource(ref.Namespace)
	if err != nil {
		return nil, err
	}
	there, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	return there, nil
}

// fasterError means that somebody else changed the object while it was edited.
type fasterError struct{ theirs *object }

// Error is part of error.
func (e *fasterError) Error() string {
	return fmt.Sprintf("%s changed while it was edited%s, and nothing was written; run the command again", create.Title(e.theirs), writer(e.theirs))
}

// maxTries bounds how often a status that is written meanwhile makes an update fail.
const maxTries = 10

// update writes the spec of an object, if nobody changed it since it was read.
func (o *Options) update(ctx context.Context, before, after *object) error {
	name := create.Title(before)
	if wizards.SameSpec(before, after) {
		o.Say("%s is like that already; nothing changed.\n", name)
		return nil
	}
	resource, err := o.resource(before.GetNamespace())
	if err != nil {
		return err
	}
	there := before
	for range maxTries {
		next := there.DeepCopy()
		next.Object["spec"] = after.Object["spec"]
		// The update fails if the object has another resourceVersion by now.
		_, err = resource.Update(ctx, next, metav1.UpdateOptions{FieldManager: "meshctl", FieldValidation: metav1.FieldValidationStrict})
		if err == nil {
			o.Say("%s changed.\n", name)
			return o.SettleLive(ctx, after)
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if there, err = resource.Get(ctx, before.GetName(), metav1.GetOptions{}); err != nil {
			break
		}
		if !wizards.SameSpec(before, there) {
			return &fasterError{there}
		}
	}
	if apierrors.IsNotFound(err) {
		return cmdutil.NotFoundErrorf("%s was deleted while it was edited; to make it again: meshctl create: %w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// writer says who wrote the spec of an object last, and when; empty if that is not known.
func writer(there *object) string {
	var by string
	var at time.Time
	for _, f := range there.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && !f.Time.Time.Before(at) {
			by, at = f.Manager, f.Time.Time
		}
	}
	if by == "" {
		return ""
	}
	return fmt.Sprintf(" (by %s at %s)", cmdutil.Clean(by), at.UTC().Format(time.RFC3339))
}
