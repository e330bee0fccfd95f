package kube

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	admissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	rbacv1 "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Clientset has the typed clients of the API groups that meshctl uses. kubernetes.Interface has
// these methods, too, and those of 50 more groups, all of which the linker keeps: 10 MB.
type Clientset interface {
	Discovery() discovery.DiscoveryInterface
	AdmissionregistrationV1() admissionregistrationv1.AdmissionregistrationV1Interface
	AppsV1() appsv1.AppsV1Interface
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	CoordinationV1() coordinationv1.CoordinationV1Interface
	CoreV1() corev1.CoreV1Interface
	EventsV1() eventsv1.EventsV1Interface
	RbacV1() rbacv1.RbacV1Interface
}

// NewClientset prepares clients that share the connections of a configuration, without I/O.
func NewClientset(config *rest.Config) (Clientset, error) {
	config = named(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connection settings for %s: %w", config.Host, err)
	}
	return NewClientsetFor(config, client)
}

// NewClientsetFor is NewClientset with an HTTP client, whose settings of the transport prevail. Like
// those of client-go, all clients share a rate limit where the configuration sets one.
func NewClientsetFor(config *rest.Config, client *http.Client) (Clientset, error) {
	config = named(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, cmp.Or(config.Burst, rest.DefaultBurst))
	}
	c := &clientset{}
	for _, err := range []error{
		set(&c.discovery, discovery.NewDiscoveryClientForConfigAndClient, config, client),
		set(&c.admissionregistration, admissionregistrationv1.NewForConfigAndClient, config, client),
		set(&c.apps, appsv1.NewForConfigAndClient, config, client),
		set(&c.authentication, authenticationv1.NewForConfigAndClient, config, client),
		set(&c.authorization, authorizationv1.NewForConfigAndClient, config, client),
		set(&c.coordination, coordinationv1.NewForConfigAndClient, config, client),
		set(&c.core, corev1.NewForConfigAndClient, config, client),
		set(&c.events, eventsv1.NewForConfigAndClient, config, client),
		set(&c.rbac, rbacv1.NewForConfigAndClient, config, client),
	} {
		if err != nil {
			return nil, fmt.Errorf("connection settings for %s: %w", config.Host, err)
		}
	}
	return c, nil
}

// named returns a copy whose client says who it is.
func named(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return config
}

// set makes the client of one group.
func set[T any](into *T, build func(*rest.Config, *http.Client) (T, error), config *rest.Config, client *http.Client) (err error) {
	*into, err = build(config, client)
	return err
}

// clientset implements Clientset.
type clientset struct {
	discovery             *discovery.DiscoveryClient
	admissionregistration *admissionregistrationv1.AdmissionregistrationV1Client
	apps                  *appsv1.AppsV1Client
	authentication        *authenticationv1.AuthenticationV1Client
	authorization         *authorizationv1.AuthorizationV1Client
	coordination          *coordinationv1.CoordinationV1Client
	core                  *corev1.CoreV1Client
	events                *eventsv1.EventsV1Client
	rbac                  *rbacv1.RbacV1Client
}

func (c *clientset) Discovery() discovery.DiscoveryInterface { return c.discovery }

func (c *clientset) AdmissionregistrationV1() admissionregistrationv1.AdmissionregistrationV1Interface {
	return c.admissionregistration
}

func (c *clientset) AppsV1() appsv1.AppsV1Interface { return c.apps }

func (c *clientset) AuthenticationV1() authenticationv1.AuthenticationV1Interface {
	return c.authentication
}

func (c *clientset) AuthorizationV1() authorizationv1.AuthorizationV1Interface {
	return c.authorization
}

func (c *clientset) CoordinationV1() coordinationv1.CoordinationV1Interface { return c.coordination }

func (c *clientset) CoreV1() corev1.CoreV1Interface { return c.core }

func (c *clientset) EventsV1() eventsv1.EventsV1Interface { return c.events }

func (c *clientset) RbacV1() rbacv1.RbacV1Interface { return c.rbac }
