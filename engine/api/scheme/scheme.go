// Package scheme knows every kind that meshctl reads or writes: its own, those of Kubernetes and those of the meshes.
package scheme

import (
	"fmt"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	kubediscoveryv1 "k8s.io/api/discovery/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"
	kuberbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	filtersv1alpha1 "github.com/meshctl/meshctl/engine/api/filters/v1alpha1"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	telemetryv1 "github.com/meshctl/meshctl/engine/api/telemetry/v1"
)

// New returns a scheme with every kind. Each call returns a new one, so that a caller may add to it.
func New() *runtime.Scheme {
	s := runtime.NewScheme()
	must(addAll(s, AddOwn, addKubernetes, addMeshes))
	return s
}

// OfMeshes returns a scheme with the kinds that users write for meshes.
func OfMeshes() *runtime.Scheme {
	s := runtime.NewScheme()
	must(addMeshes(s))
	return s
}

func must(err error) {
	if err != nil {
		// The lists below are fixed, so this is a mistake in the program and shows in every run.
		panic(fmt.Sprintf("build the scheme: %v", err))
	}
}

// AddOwn adds the kinds that meshctl defines to s.
func AddOwn(s *runtime.Scheme) error {
	return addAll(s,
		certificatesv1.AddToScheme,
		discoveryv1.AddToScheme,
		enterprisev1beta1.AddToScheme,
		multiclusterv1alpha1.AddToScheme,
		networkingv1.AddToScheme,
		observabilityv1.AddToScheme,
		rbacv1.AddToScheme,
		settingsv1.AddToScheme,
	)
}

func addKubernetes(s *runtime.Scheme) error {
	return addAll(s,
		admissionregistrationv1.AddToScheme,
		apiextensionsv1.AddToScheme,
		appsv1.AddToScheme,
		authorizationv1.AddToScheme,
		coordinationv1.AddToScheme,
		corev1.AddToScheme,
		kubediscoveryv1.AddToScheme,
		kuberbacv1.AddToScheme,
	)
}

func addMeshes(s *runtime.Scheme) error {
	return addAll(s, istionetworkingv1.AddToScheme, istiosecurityv1.AddToScheme, filtersv1alpha1.AddToScheme, telemetryv1.AddToScheme, osmconfigv1alpha2.AddToScheme, gatewayv1.AddToScheme, kubenetworkingv1.AddToScheme)
}

func addAll(s *runtime.Scheme, adds ...func(*runtime.Scheme) error) error {
	for _, add := range adds {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
