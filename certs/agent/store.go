package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// store reads and writes the objects on the agent's cluster. Every read asks the API server: what an agent decides must not
// be based on what was true a while ago.
type store struct {
	client *kube.Client
	// namespace is the agent's own.
	namespace string
	newKey    func(bits int) (pki.Key, error)
}

func newStore(config *rest.Config, namespace string, newKey func(int) (pki.Key, error)) (*store, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	if err := certificatesv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	if err := authenticationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	client, err := kube.NewClient(config, kube.ClientOptions{Serializer: serializer.NewCodecFactory(scheme).WithoutConversion()})
	if err != nil {
		return nil, err
	}
	return &store{client: client, namespace: namespace, newKey: newKey}, nil
}

// get reads an object; nil if there is none. An object whose type is not served is no object that is missing: the answer
// says nothing about whether it was deleted.
func get[T any](ctx context.Context, s *store, k snapshot.Kind, namespace, name string, out *T) (*T, error) {
	object, ok := any(out).(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no API object", k)
	}
	err := s.client.Get().AbsPath(kube.Path(k, namespace, name, "")...).Do(ctx).Into(object)
	if apierrors.IsNotFound(err) && named(err, name) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s cannot be read: %w", k, namespace, name, sentence(err))
	}
	return out, nil
}

// named reports whether a not-found is about an object, not about its type.
func named(err error, name string) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Details != nil && status.Status().Details.Name == name
}

func (s *store) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get(ctx, s, snapshot.Secret, namespace, name, &corev1.Secret{})
}

// certificates lists the IssuedCertificates by name.
func (s *store) certificates(ctx context.Context) (map[string]*certificatesv1.IssuedCertificate, error) {
	var list certificatesv1.IssuedCertificateList
	if err := s.list(ctx, snapshot.IssuedCertificate, &list); err != nil {
		return nil, err
	}
	out := map[string]*certificatesv1.IssuedCertificate{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// requests lists the CertificateRequests by name.
func (s *store) requests(ctx context.Context) (map[string]*certificatesv1.CertificateRequest, error) {
	var list certificatesv1.CertificateRequestList
	if err := s.list(ctx, snapshot.CertificateRequest, &list); err != nil {
		return nil, err
	}
	out := map[string]*certificatesv1.CertificateRequest{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

func (s *store) list(ctx context.Context, k snapshot.Kind, into runtime.Object) error {
	if err := s.client.Get().AbsPath(kube.Path(k, s.namespace, "", "")...).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("%s in namespace %s cannot be listed: %w", k.Info().Resource, s.namespace, sentence(err))
	}
	return nil
}

// perform does a write. A conflict says that the object has changed since it was read.
func (s *store) perform(ctx context.Context, w *write) error {
	object, kind, meta, err := s.build(w)
	if err != nil {
		return err
	}
	var request *rest.Request
	path := kube.Path(kind, meta.GetNamespace(), meta.GetName(), "")
	switch {
	case w.verb == remove:
		uid, version := meta.GetUID(), meta.GetResourceVersion()
		request = s.client.Delete().AbsPath(path...).Body(&metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		})
	case meta.GetResourceVersion() == "":
		request = s.client.Post().AbsPath(kube.Path(kind, meta.GetNamespace(), "", "")...).Body(object)
	default:
		request = s.client.Put().AbsPath(path...).Body(object)
	}
	if err := request.Param("fieldManager", FieldManager).Do(ctx).Error(); err != nil {
		// The error of a Secret that is not valid could quote it; only known sentences of the server are passed on.
		return fmt.Errorf("%s: %w", w, sentence(err))
	}
	return nil
}

// build completes the object of a write: what needs entropy is made here.
func (s *store) build(w *write) (runtime.Object, snapshot.Kind, metav1.Object, error) {
	if w.request != nil {
		request := w.request.DeepCopy()
		request.APIVersion, request.Kind = certificatesv1.GroupVersion.String(), "CertificateRequest"
		if w.sign != nil {
			text, err := pki.NewRequest(rand.Reader, w.sign.key, w.sign.organization, w.sign.hosts)
			if err != nil {
				return nil, 0, nil, fmt.Errorf("%s: %w", w, err)
			}
			request.Spec.CertificateSigningRequest = text
		}
		return request, snapshot.CertificateRequest, request, nil
	}
	secret := w.secret.DeepCopy()
	secret.APIVersion, secret.Kind = "v1", "Secret"
	if w.makeKey != 0 {
		key, err := s.newKey(w.makeKey)
		if err != nil {
			return nil, 0, nil, fmt.Errorf("%s: %w", w, err)
		}
		text, err := key.PEM()
		if err != nil {
			return nil, 0, nil, fmt.Errorf("%s: %w", w, err)
		}
		secret.Data = map[string][]byte{privateKey: text}
	}
	return secret, snapshot.Secret, secret, nil
}

// putStatus applies the status of an object that is still the one that was read.
func (s *store) putStatus(ctx context.Context, k snapshot.Kind, object metav1.Object, status any) error {
	text, err := json.Marshal(map[string]any{
		"apiVersion": k.Info().GroupVersion().String(), "kind": k.String(),
		"metadata": map[string]any{"namespace": object.GetNamespace(), "name": object.GetName(), "uid": object.GetUID()},
		"status":   status,
	})
	if err != nil {
		return fmt.Errorf("status of %s %s/%s: %w", k, object.GetNamespace(), object.GetName(), err)
	}
	err = s.client.Patch(types.ApplyPatchType).AbsPath(kube.Path(k, object.GetNamespace(), object.GetName(), "status")...).
		Param("fieldManager", FieldManager).Param("force", "true").Body(text).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("status of %s %s/%s cannot be written: %w", k, object.GetNamespace(), object.GetName(), sentence(err))
	}
	return nil
}

// answerError is an error of the API server with a text that is the same each time.
type answerError struct{ err error }

func sentence(err error) error       { return &answerError{err} }
func (e *answerError) Error() string { return kube.Message(e.err) }
func (e *answerError) Unwrap() error { return e.err }
