package plan

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// serverSideManager is the field manager of kubectl apply --server-side, and clientSideManager that of kubectl apply.
	serverSideManager = "kubectl"
	clientSideManager = "kubectl-client-side-apply"
)

// dryRun asks the API server of the management cluster what objects will be.
type dryRun struct {
	config *rest.Config
	client dynamic.Interface
	// manager is the field manager of server-side apply; empty for what kubectl apply does.
	manager string
	// notes are sentences on how objects would be applied.
	notes []string
}

func newDryRun(config *rest.Config, manager string) (*dryRun, error) {
	config = kube.Unlimited(config)           // a folder of policies is two requests for each
	config.WarningHandler = rest.NoWarnings{} // apply shows them
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	return &dryRun{config: config, client: client, manager: manager}, nil
}

// deniedError: who asks may not do to an object what applying it would do.
type deniedError struct {
	verb string
	ref  snapshot.Ref
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("you may not %s %s in namespace %s", e.verb, e.ref.Kind.Info().Resource, e.ref.Namespace)
}

// edits are the manifests as the API server would store them, and those that it would refuse. A deniedError says that it answers
// neither.
func (d *dryRun) edits(ctx context.Context, manifests []offline.Manifest) (edits []explain.Edit, refused []explain.Refusal, err error) {
	for i := range manifests {
		m := &manifests[i]
		future, err := d.apply(ctx, m)
		var denied *deniedError
		switch {
		case errors.As(err, &denied):
			return nil, nil, err
		case err != nil && kube.Answered(err):
			refused = append(refused, explain.Refusal{Ref: m.Ref, Reason: kube.Message(err)})
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("%s: dry run at the management cluster %s: %w; try again, or set --replace", m.Ref, d.config.Host, err)
		}
		object := m.Ref.Kind.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(future.Object, object); err != nil {
			return nil, nil, fmt.Errorf("%s: the answer of the API server: %w; set --replace", m.Ref, err)
		}
		edits = append(edits, explain.Edit{Ref: m.Ref, Object: object})
	}
	return edits, refused, nil
}

// apply is what an object would be after kubectl apply or, with a manager, after server-side apply.
func (d *dryRun) apply(ctx context.Context, m *offline.Manifest) (*unstructured.Unstructured, error) {
	resource := d.client.Resource(m.Ref.Kind.GroupVersionResource()).Namespace(m.Ref.Namespace)
	stored, err := resource.Get(ctx, m.Ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		created, err := resource.Create(ctx, m.Written.DeepCopy(), metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: serverSideManager, FieldValidation: metav1.FieldValidationStrict,
		})
		return created, d.denied(ctx, m.Ref, "create", err)
	}
	if err != nil {
		return nil, d.denied(ctx, m.Ref, "get", err)
	}
	options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: clientSideManager, FieldValidation: metav1.FieldValidationStrict}
	applied, found := stored.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if d.manager == "" && found {
		patch, err := threeWay(applied, m.Written, stored)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", corev1.LastAppliedConfigAnnotation, err)
		}
		future, err := resource.Patch(ctx, m.Ref.Name, types.MergePatchType, patch, options)
		return future, d.denied(ctx, m.Ref, "patch", err)
	}
	written, err := m.Written.MarshalJSON()
	if err != nil {
		return nil, err
	}
	options.FieldManager = serverSideManager
	if d.manager != "" {
		options.FieldManager = d.manager
	}
	future, err := resource.Patch(ctx, m.Ref.Name, types.ApplyPatchType, written, options)
	if apierrors.IsConflict(err) {
		// Controllers of GitOps force conflicts, and kubectl says how to: what comes after is the answer.
		d.notes = append(d.notes, fmt.Sprintf("%s: server-side apply by %s stops at a conflict unless it is forced, as here (%s)", m.Ref, options.FieldManager, kube.Message(err)))
		force := true
		options.Force = &force
		future, err = resource.Patch(ctx, m.Ref.Name, types.ApplyPatchType, written, options)
	}
	return future, d.denied(ctx, m.Ref, "patch", err)
}

// threeWay is the patch that kubectl apply sends for a custom resource: fields that were applied and are not in the file any more
// go, those in the file are set, and others stay.
func threeWay(applied string, written, stored *unstructured.Unstructured) ([]byte, error) {
	next := written.DeepCopy()
	annotations := next.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	next.SetAnnotations(annotations)
	config, err := next.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(config)
	next.SetAnnotations(annotations)
	modified, err := next.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := stored.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(applied), modified, current)
}

// denied is a deniedError if an API server forbids something because whoever asks may not do it, and not because of the object:
// admission has the same status.
func (d *dryRun) denied(ctx context.Context, ref snapshot.Ref, verb string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	client, clientErr := kube.NewClientset(d.config)
	if clientErr != nil {
		return err
	}
	info := ref.Kind.Info()
	review, reviewErr := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: ref.Namespace, Verb: verb, Group: info.Group, Resource: info.Resource, Name: ref.Name,
		}},
	}, metav1.CreateOptions{})
	if reviewErr == nil && !review.Status.Allowed {
		return &deniedError{verb: verb, ref: ref}
	}
	return err
}
