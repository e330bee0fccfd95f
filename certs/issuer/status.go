package issuer

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// writeTimeout bounds one write.
const writeTimeout = 15 * time.Second

// writer writes the statuses of the requests of one cluster.
type writer struct {
	config *rest.Config
	client dynamic.Interface
}

// reach prepares a client if the configuration is another one than before.
func (w *writer) reach(config *rest.Config) error {
	if w.config == config {
		return nil
	}
	client, err := dynamic.NewForConfig(kube.Unlimited(config))
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	w.config, w.client = config, client
	return nil
}

// write applies a status to a request. The UID makes the API server refuse it if the request
// is another one now, and an apply of a status creates nothing.
func (w *writer) write(ctx context.Context, request *certificatesv1.CertificateRequest, status certificatesv1.CertificateRequestStatus) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	o := &unstructured.Unstructured{Object: map[string]any{"status": fields(status)}}
	o.SetGroupVersionKind(snapshot.CertificateRequest.Info().GroupVersionKind)
	o.SetNamespace(request.Namespace)
	o.SetName(request.Name)
	o.SetUID(request.UID)
	_, err := w.client.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace(request.Namespace).
		ApplyStatus(ctx, request.Name, o, metav1.ApplyOptions{FieldManager: snapshot.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("CertificateRequest %s/%s: writing its status: %w", request.Namespace, request.Name, err)
	}
	return nil
}

func fields(s certificatesv1.CertificateRequestStatus) map[string]any {
	out := map[string]any{"observedGeneration": s.ObservedGeneration, "state": string(s.State)}
	if s.Error != "" {
		out["error"] = s.Error
	}
	if len(s.SignedCertificate) > 0 {
		out["signedCertificate"] = base64.StdEncoding.EncodeToString(s.SignedCertificate)
		out["signingRootCa"] = base64.StdEncoding.EncodeToString(s.SigningRootCa)
	}
	return out
}
