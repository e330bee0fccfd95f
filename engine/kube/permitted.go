package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errUnstreamed makes the reflector list, before which Asks has its say.
var errUnstreamed = errors.New("whether it may be listed is asked first")

// permitted asks the server whether the kind may be listed, as anybody may (SelfSubjectAccessReview). It returns the error that a list would
// get; nil if it may be listed, or if the server knows no such question. That it cannot be asked is no answer: a server that has just
// started forbids everything for a moment.
func (l *Lister) permitted(ctx context.Context) error {
	info := l.Kind.Info()
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: info.Group, Resource: info.Resource, Namespace: l.Namespace,
		}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return fmt.Errorf("access review: %w", err)
	}
	answer, err := l.Client.Post().AbsPath("/apis", authorizationv1.SchemeGroupVersion.String(), "selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx).Raw()
	switch {
	case IsAbsent(err):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(answer, review); err != nil {
		return fmt.Errorf("access review: %w", err)
	}
	if review.Status.Allowed {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: info.Group, Resource: info.Resource}, "", errors.New("the account may not list them"))
}
