package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/openservicemesh/osm/pkg/catalog"
	"github.com/openservicemesh/osm/pkg/certificate"
	"github.com/openservicemesh/osm/pkg/certificate/providers"
	"github.com/openservicemesh/osm/pkg/configurator"
	"github.com/openservicemesh/osm/pkg/constants"
	"github.com/openservicemesh/osm/pkg/endpoint"
	"github.com/openservicemesh/osm/pkg/envoy/ads"
	"github.com/openservicemesh/osm/pkg/envoy/registry"
	configclient "github.com/openservicemesh/osm/pkg/gen/client/config/clientset/versioned"
	policyclient "github.com/openservicemesh/osm/pkg/gen/client/policy/clientset/versioned"
	"github.com/openservicemesh/osm/pkg/health"
	"github.com/openservicemesh/osm/pkg/httpserver"
	"github.com/openservicemesh/osm/pkg/ingress"
	"github.com/openservicemesh/osm/pkg/k8s"
	"github.com/openservicemesh/osm/pkg/k8s/events"
	"github.com/openservicemesh/osm/pkg/k8s/informers"
	"github.com/openservicemesh/osm/pkg/messaging"
	"github.com/openservicemesh/osm/pkg/metricsstore"
	"github.com/openservicemesh/osm/pkg/policy"
	kubeprovider "github.com/openservicemesh/osm/pkg/providers/kube"
	"github.com/openservicemesh/osm/pkg/service"
	"github.com/openservicemesh/osm/pkg/smi"
	accessclient "github.com/servicemeshinterface/smi-sdk-go/pkg/gen/client/access/clientset/versioned"
	specsclient "github.com/servicemeshinterface/smi-sdk-go/pkg/gen/client/specs/clientset/versioned"
	splitclient "github.com/servicemeshinterface/smi-sdk-go/pkg/gen/client/split/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// certificateCheck is how often the root certificate is checked, as in the original.
const certificateCheck = 5 * time.Second

// controller is what the parts of Open Service Mesh share.
type controller struct {
	options
	kube         kubernetes.Interface
	broker       *messaging.Broker
	config       configurator.Configurator
	kubernetes   k8s.Controller
	certificates *certificate.Manager
	policies     policy.Controller
	informers    *informers.InformerCollection
	stop         chan struct{}
}

// startController starts everything and returns; it runs until stop is closed.
func startController(ctx context.Context, cancel context.CancelFunc, stop chan struct{}, o options) error {
	access, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	c := &controller{options: o, stop: stop}
	if c.kube, err = kubernetes.NewForConfig(access); err != nil {
		return err
	}
	if err := c.recordEvents(ctx); err != nil {
		return err
	}
	startMetrics()
	if err := c.read(ctx, access); err != nil {
		return err
	}
	xds, err := c.serveProxies(ctx, cancel)
	if err != nil {
		return err
	}
	if err := c.serveWebhook(ctx); err != nil {
		return fmt.Errorf("validating webhook: %w", err)
	}
	go k8s.WatchAndUpdateLogLevel(c.broker, stop)
	return c.serveHealth(xds)
}

// recordEvents names the pod that the controller's Kubernetes events are about.
func (c *controller) recordEvents(ctx context.Context) error {
	pod, err := c.kube.CoreV1().Pods(c.namespace).Get(ctx, c.pod, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("--pod: %w", err)
	}
	return events.GenericEventRecorder().Initialize(pod, c.kube, c.namespace)
}

// read starts the caches of what the controller reads.
func (c *controller) read(ctx context.Context, access *rest.Config) (err error) {
	policies, err := policyclient.NewForConfig(access)
	if err != nil {
		return err
	}
	configs, err := configclient.NewForConfig(access)
	if err != nil {
		return err
	}
	splits, err := splitclient.NewForConfig(access)
	if err != nil {
		return err
	}
	specs, err := specsclient.NewForConfig(access)
	if err != nil {
		return err
	}
	targets, err := accessclient.NewForConfig(access)
	if err != nil {
		return err
	}
	c.broker = messaging.NewBroker(c.stop)
	c.informers, err = informers.NewInformerCollection(c.meshName, c.stop,
		informers.WithKubeClient(c.kube),
		informers.WithSMIClients(splits, specs, targets),
		informers.WithConfigClient(configs, constants.OSMMeshConfig, c.namespace),
		informers.WithPolicyClient(policies),
	)
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	c.config = configurator.NewConfigurator(c.informers, c.namespace, constants.OSMMeshConfig, c.broker)
	c.kubernetes = k8s.NewKubernetesController(c.informers, policies, c.broker)
	c.policies = policy.NewPolicyController(c.informers, c.kubernetes, c.broker)
	c.certificates, err = providers.NewCertificateManager(ctx, c.kube, access, c.config, c.namespace,
		providers.TresorOptions{SecretName: constants.DefaultCABundleSecretName}, c.broker, certificateCheck, c.trustDomain)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}

// serveProxies starts the aggregated discovery service.
func (c *controller) serveProxies(ctx context.Context, cancel context.CancelFunc) (*ads.Server, error) {
	if err := ingress.Initialize(c.kube, c.kubernetes, c.stop, c.config, c.certificates, c.broker); err != nil {
		return nil, fmt.Errorf("ingress: %w", err)
	}
	provider := kubeprovider.NewClient(c.kubernetes, c.config)
	mesh := smi.NewSMIClient(c.informers, c.namespace, c.kubernetes, c.broker)
	catalogue := catalog.NewMeshCatalog(c.kubernetes, mesh, c.certificates, c.policies, c.stop, c.config,
		[]service.Provider{provider}, []endpoint.Provider{provider}, c.broker)
	proxies := registry.NewProxyRegistry(&registry.KubeProxyServiceMapper{KubeController: c.kubernetes}, c.broker)
	go proxies.ReleaseCertificateHandler(c.certificates, c.stop)
	own, err := c.certificates.IssueCertificate("ads", certificate.Internal)
	if err != nil {
		return nil, fmt.Errorf("certificate of the server for proxies: %w", err)
	}
	server := ads.NewADSServer(catalogue, proxies, false, c.namespace, c.config, c.certificates, c.kubernetes, c.broker)
	if err := server.Start(ctx, cancel, c.adsPort, own); err != nil {
		return nil, fmt.Errorf("server for proxies: %w", err)
	}
	return server, nil
}

// serveHealth answers probes.
func (c *controller) serveHealth(xds *ads.Server) error {
	probes := []health.Probes{xds, smi.HealthChecker{DiscoveryClient: c.kube.Discovery()}}
	server := httpserver.NewHTTPServer(uint16(c.httpPort))
	server.AddHandlers(map[string]http.Handler{
		constants.OSMControllerReadinessPath: health.ReadinessHandler(probes, nil),
		constants.OSMControllerLivenessPath:  health.LivenessHandler(probes, nil),
		constants.MetricsPath:                metricsstore.DefaultMetricsStore.Handler(),
	})
	return server.Start()
}

// startMetrics registers the counters that the parts count with.
func startMetrics() {
	m := metricsstore.DefaultMetricsStore
	m.Start(m.K8sAPIEventCounter, m.MonitoredNamespaceCounter, m.ProxyConnectCount, m.ProxyConfigUpdateTime,
		m.ProxyBroadcastEventCount, m.ProxyResponseSendSuccessCount, m.ProxyResponseSendErrorCount, m.ErrCodeCounter,
		m.HTTPResponseTotal, m.HTTPResponseDuration, m.ProxyXDSRequestCount, m.AdmissionWebhookResponseTotal, m.EventsQueued)
}
