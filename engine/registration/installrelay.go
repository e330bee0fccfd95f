package registration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingk8sv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// InstallRelay is how agents reach an installation. What is not set is as it was installed before.
type InstallRelay struct {
	// Enabled lets agents dial serve; none can at first.
	Enabled *bool
	// ServiceType is that of the Service that they dial: LoadBalancer, NodePort or ClusterIP; DefaultRelayServiceType at first.
	ServiceType string
	// Hosts are DNS names that are in the certificate of serve, beside those of the Service: what agents, and gateways on the way, may
	// ask for.
	Hosts []string
}

// DefaultRelayServiceType makes the Service reachable from other clusters, as in Gloo Mesh.
const DefaultRelayServiceType = string(corev1.ServiceTypeLoadBalancer)

// RelayServiceTypes are those that the Service for agents can have.
func RelayServiceTypes() []string {
	return []string{string(corev1.ServiceTypeLoadBalancer), string(corev1.ServiceTypeNodePort), string(corev1.ServiceTypeClusterIP)}
}

const (
	relayPortName = "relay"
	podIP         = "POD_IP"
	relayBindFlag = "--relay-bind"
	relayNameFlag = "--relay-name"
)

func (r *InstallRelay) enabled() bool { return r.Enabled != nil && *r.Enabled }

// complete sets defaults and rejects invalid values.
func (r *InstallRelay) complete() error {
	if !r.enabled() {
		if r.ServiceType != "" || len(r.Hosts) > 0 {
			return fmt.Errorf("relay: its Service and its names are of no use without it; enable it with --relay")
		}
		return nil
	}
	orDefault(&r.ServiceType, DefaultRelayServiceType)
	if !slices.Contains(RelayServiceTypes(), r.ServiceType) {
		return fmt.Errorf("relay: Service type %q: want one of %s", r.ServiceType, strings.Join(RelayServiceTypes(), ", "))
	}
	for _, host := range r.Hosts {
		if len(validation.IsDNS1123Subdomain(host)) > 0 {
			return fmt.Errorf("relay: host %q: want a DNS name such as relay.example.com, without a port", host)
		}
	}
	return nil
}

// inherit takes what is not set from what is installed; service is that for agents, nil if there is none.
func (r *InstallRelay) inherit(d *appsv1.Deployment, service *unstructured.Unstructured, namespace string) {
	var args []string
	for n := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[n]; c.Name == serveContainer {
			args = c.Args
		}
	}
	was := slices.Contains(args, relayBindFlag)
	if r.Enabled == nil {
		r.Enabled = &was
	}
	if !was || !*r.Enabled {
		return
	}
	if r.Hosts == nil {
		own := relayNames(namespace)
		for n := 1; n < len(args); n++ {
			if args[n-1] == relayNameFlag && !slices.Contains(own, args[n]) {
				r.Hosts = append(r.Hosts, args[n])
			}
		}
	}
	if service != nil && r.ServiceType == "" {
		// A field of another type than the API's cannot be stored: absent is absent.
		r.ServiceType, _, _ = unstructured.NestedString(service.Object, "spec", "type")
	}
}

// relayNames are the DNS names of the Service for agents.
func relayNames(namespace string) []string {
	name := snapshot.RelayServerName(namespace)
	return []string{name, name + ".svc"}
}

// extendContainer has serve let agents in.
func (r *InstallRelay) extendContainer(c *corev1ac.ContainerApplyConfiguration, namespace string) {
	if !r.enabled() {
		return
	}
	port := strconv.Itoa(snapshot.RelayPort)
	// Brackets are right around addresses of both families.
	c.WithArgs(relayBindFlag, ":"+port, "--relay-advertise", "[$("+podIP+")]:"+port)
	for _, name := range slices.Concat(relayNames(namespace), r.Hosts) {
		c.WithArgs(relayNameFlag, name)
	}
	c.WithEnv(podIPVariable()).
		WithPorts(corev1ac.ContainerPort().WithName(relayPortName).WithContainerPort(snapshot.RelayPort).WithProtocol(corev1.ProtocolTCP))
}

// podIPVariable has the address of the pod.
func podIPVariable() *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(podIP).WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("status.podIP")))
}

// ingress lets agents in, from everywhere, and the replica of serve that passes them on.
func (r *InstallRelay) ingress() []*networkingk8sv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	if !r.enabled() {
		return nil
	}
	return []*networkingk8sv1ac.NetworkPolicyIngressRuleApplyConfiguration{ingressTo(relayPortName)}
}

func ingressTo(port string) *networkingk8sv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	return networkingk8sv1ac.NetworkPolicyIngressRule().WithPorts(
		networkingk8sv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromString(port)))
}

// relayServiceObject is what agents dial. Proxies must not take it for gRPC in plain text, as its name says.
func (o *InstallOptions) relayServiceObject() *object {
	return &object{
		resource: services, namespace: o.Namespace, name: snapshot.RelayService, foreignHint: installHint,
		want: corev1ac.Service(snapshot.RelayService, o.Namespace).WithLabels(serveLabels()).WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceType(o.Relay.ServiceType)).WithSelector(selected()).
			WithPorts(corev1ac.ServicePort().WithName("grpc").WithPort(snapshot.RelayPort).
				WithTargetPort(intstr.FromString(relayPortName)).WithProtocol(corev1.ProtocolTCP).WithAppProtocol("tls"))),
	}
}

// noteRelay says what stays of a relay that is switched off.
func (i *installation) noteRelay(service *unstructured.Unstructured) {
	if service == nil || i.Relay.enabled() || service.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy {
		return
	}
	i.report.note(fmt.Sprintf("Service %s/%s stays, and leads nowhere: agents can no longer dial serve; delete it with `kubectl -n %s delete service %s`",
		i.Namespace, snapshot.RelayService, i.Namespace, snapshot.RelayService))
}
