package main

import (
	"context"
	"net/http"
	_ "unsafe" // for go:linkname

	"github.com/openservicemesh/osm/pkg/certificate"
	"github.com/openservicemesh/osm/pkg/policy"
	"github.com/openservicemesh/osm/pkg/validator"
	"github.com/openservicemesh/osm/pkg/version"
	"github.com/openservicemesh/osm/pkg/webhook"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	client "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
)

// The one function of Open Service Mesh that starts the webhook has its port as
// a constant. The validation is not exported, and it has to be the real one here,
// so it is linked by name. The types below have the layout of the originals in the
// version of go.mod: check them again when that changes.

type judge func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

type validatingWebhookServer struct{ validators map[string]judge }

type policyValidator struct{ policyClient policy.Controller }

//go:linkname doValidation github.com/openservicemesh/osm/pkg/validator.(*validatingWebhookServer).doValidation
func doValidation(*validatingWebhookServer, http.ResponseWriter, *http.Request)

//go:linkname trafficTargetValidator github.com/openservicemesh/osm/pkg/validator.trafficTargetValidator
func trafficTargetValidator(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

//go:linkname egressValidator github.com/openservicemesh/osm/pkg/validator.egressValidator
func egressValidator(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

//go:linkname ingressBackendValidator github.com/openservicemesh/osm/pkg/validator.(*policyValidator).ingressBackendValidator
func ingressBackendValidator(*policyValidator, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

//go:linkname createOrUpdateValidatingWebhook github.com/openservicemesh/osm/pkg/validator.createOrUpdateValidatingWebhook
func createOrUpdateValidatingWebhook(clients kubernetes.Interface, cert *certificate.Certificate, webhookName, meshName, namespace, version string, validateTrafficTarget, enableReconciler bool) error

// serveWebhook starts the server, and writes the configuration by which the API
// server finds it.
func (c *controller) serveWebhook(ctx context.Context) error {
	policies := &policyValidator{policyClient: c.policies}
	server := &validatingWebhookServer{validators: map[string]judge{
		"access.smi-spec.io/v1alpha3, Kind=TrafficTarget": trafficTargetValidator,
		"policy.openservicemesh.io/v1alpha1, Kind=Egress": egressValidator,
		"policy.openservicemesh.io/v1alpha1, Kind=IngressBackend": func(r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
			return ingressBackendValidator(policies, r)
		},
	}}
	handlers := map[string]http.HandlerFunc{
		"/validate": func(w http.ResponseWriter, r *http.Request) { doValidation(server, w, r) },
	}
	clients := onPort{c.kube, int32(c.webhookPort)}
	s, err := webhook.NewServer(validator.ValidatorWebhookSvc, c.namespace, c.webhookPort, c.certificates, handlers,
		func(cert *certificate.Certificate) error {
			return createOrUpdateValidatingWebhook(clients, cert, c.webhook, c.meshName, c.namespace, version.Version, true, false)
		})
	if err != nil {
		return err
	}
	go s.Run(ctx)
	return nil
}

// onPort is a Kubernetes client that writes another port into webhook
// configurations.
type onPort struct {
	kubernetes.Interface
	port int32
}

func (o onPort) AdmissionregistrationV1() client.AdmissionregistrationV1Interface {
	return onPortGroup{o.Interface.AdmissionregistrationV1(), o.port}
}

type onPortGroup struct {
	client.AdmissionregistrationV1Interface
	port int32
}

func (o onPortGroup) ValidatingWebhookConfigurations() client.ValidatingWebhookConfigurationInterface {
	return onPortKind{o.AdmissionregistrationV1Interface.ValidatingWebhookConfigurations(), o.port}
}

type onPortKind struct {
	client.ValidatingWebhookConfigurationInterface
	port int32
}

func (o onPortKind) Create(ctx context.Context, config *admissionregistrationv1.ValidatingWebhookConfiguration, opts metav1.CreateOptions) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return o.ValidatingWebhookConfigurationInterface.Create(ctx, o.moved(config), opts)
}

func (o onPortKind) Update(ctx context.Context, config *admissionregistrationv1.ValidatingWebhookConfiguration, opts metav1.UpdateOptions) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return o.ValidatingWebhookConfigurationInterface.Update(ctx, o.moved(config), opts)
}

func (o onPortKind) moved(config *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
	config = config.DeepCopy()
	for i := range config.Webhooks {
		if config.Webhooks[i].ClientConfig.Service != nil {
			config.Webhooks[i].ClientConfig.Service.Port = &o.port
		}
	}
	return config
}
