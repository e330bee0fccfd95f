package registration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/crds"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// hashAnnotation on a CRD tells whether it is the one of this version.
const hashAnnotation = "registration.multicluster.solo.io/crd-hash"

// establishTimeout bounds the wait until an API server serves new types.
const establishTimeout = 30 * time.Second

// InstallCRDs installs the custom resource types on the management cluster
// where they are missing or of another version, and waits until they are served.
func InstallCRDs(ctx context.Context, config *rest.Config) (Report, error) {
	s, err := newServer(managementSide, "", config, 0)
	if err != nil {
		return Report{}, err
	}
	outdated, err := crdsOn(s).outdatedCRDs(ctx, "")
	if err != nil {
		return Report{}, err
	}
	changes, err := crdsOn(s).applyCRDs(ctx, outdated)
	return Report{Changes: changes}, err
}

// agentGroup is the API group of what a management plane and its agents say to each other. Its
// types are needed on registered clusters. They stay when a cluster is deregistered: another
// management plane may use them, and with them its objects would go.
var agentGroup = snapshot.CertificateRequest.Info().Group

// crdInstaller writes the types of objects to a server.
type crdInstaller struct{ *server }

func crdsOn(s *server) crdInstaller { return crdInstaller{s} }

// outdatedCRDs lists the types of an API group that are missing or differ; of all groups if it is
// empty.
func (s crdInstaller) outdatedCRDs(ctx context.Context, group string) ([]*object, error) {
	all, err := crds.All()
	if err != nil {
		return nil, fmt.Errorf("the custom resource types of this binary: %w", err)
	}
	list, err := s.meta.Resource(crdResource.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%s: listing custom resource types: %w", s.label, err)
	}
	hashes := map[string]string{}
	if err == nil {
		for i := range list.Items {
			hashes[list.Items[i].Name] = list.Items[i].Annotations[hashAnnotation]
		}
	}
	var out []*object
	for _, crd := range all {
		if group != "" && crd.Spec.Group != group {
			continue
		}
		o, hash, err := crdObject(crd)
		if err != nil {
			return nil, err
		}
		if hashes[o.name] != hash {
			out = append(out, o)
		}
	}
	return out, nil
}

func crdObject(crd *apiextensionsv1.CustomResourceDefinition) (o *object, hash string, err error) {
	crd = crd.DeepCopy()
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	data, err := json.Marshal(crd)
	if err != nil {
		return nil, "", fmt.Errorf("CustomResourceDefinition %s: encoding: %w", crd.Name, err)
	}
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:16])
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, "", fmt.Errorf("CustomResourceDefinition %s: encoding: %w", crd.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(crdResource.kind))
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hashAnnotation] = hash
	u.SetAnnotations(annotations)
	return &object{resource: crdResource, name: crd.Name, want: u}, hash, nil
}

// applyCRDs writes the types and waits until they are served.
func (s crdInstaller) applyCRDs(ctx context.Context, outdated []*object) ([]Change, error) {
	var changes []Change
	for _, o := range outdated {
		change, err := s.apply(ctx, o)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	for _, o := range outdated {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, establishTimeout, true, func(ctx context.Context) (bool, error) {
			return s.established(ctx, o.name)
		})
		if err != nil {
			return changes, fmt.Errorf("%s: waiting until %s is served: %w", s.label, o.describe(), err)
		}
	}
	return changes, nil
}

func (s crdInstaller) established(ctx context.Context, name string) (bool, error) {
	found, err := s.get(ctx, crdResource, "", name)
	if err != nil || found == nil {
		return false, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &crd); err != nil {
		return false, fmt.Errorf("CustomResourceDefinition %s: decoding: %w", name, err)
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue && s.served(ctx, &crd), nil
		}
	}
	return false, nil
}

// served asks for the type itself: the condition comes a little earlier.
func (s crdInstaller) served(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for i := range crd.Spec.Versions {
		gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[i].Name, Resource: crd.Spec.Names.Plural}
		if _, err := s.meta.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); crd.Spec.Versions[i].Served && apierrors.IsNotFound(err) {
			return false
		}
	}
	return true
}
