package registration_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// relayArgs are the arguments of serve that are about its relay.
func relayArgs(c *corev1.Container) []string {
	i := slices.Index(c.Args, "--relay-bind")
	if i < 0 {
		return nil
	}
	return c.Args[i:]
}

// TestInstallRelay: agents have a Service, an upgrade keeps what was chosen, switching it off says what stays, and
// uninstalling leaves nothing.
func TestInstallRelay(t *testing.T) {
	t.Parallel()
	config := single(t)
	clientset := sandboxtest.Clientset(t, config)
	before := inventory(t, config)
	install := func(version string, relay registration.InstallRelay) registration.Report {
		t.Helper()
		report, err := registration.Install(t.Context(), registration.InstallOptions{Config: config, Namespace: "mesh", Image: "meshctl:" + version, Relay: relay})
		require.NoError(t, err)
		return report
	}
	service := func() *corev1.Service {
		t.Helper()
		s, err := clientset.CoreV1().Services("mesh").Get(t.Context(), snapshot.RelayService, metav1.GetOptions{})
		require.NoError(t, err)
		return s
	}
	install("1", registration.InstallRelay{})
	assert.Nil(t, relayArgs(&deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]))
	_, err := clientset.CoreV1().Services("mesh").Get(t.Context(), snapshot.RelayService, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	install("1", registration.InstallRelay{Enabled: ptr.To(true), ServiceType: "NodePort", Hosts: []string{"relay.example.com"}})
	want := []string{
		"--relay-bind", ":9900", "--relay-advertise", "[$(POD_IP)]:9900",
		"--relay-name", "gloo-mesh-mgmt-server.mesh", "--relay-name", "gloo-mesh-mgmt-server.mesh.svc", "--relay-name", "relay.example.com",
	}
	c := deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]
	assert.Equal(t, want, relayArgs(&c))
	assert.Equal(t, "status.podIP", c.Env[0].ValueFrom.FieldRef.FieldPath)
	s := service()
	assert.Equal(t, corev1.ServiceTypeNodePort, s.Spec.Type)
	assert.EqualValues(t, 9900, s.Spec.Ports[0].Port)
	assert.Contains(t, c.Ports, corev1.ContainerPort{Name: s.Spec.Ports[0].TargetPort.StrVal, ContainerPort: 9900, Protocol: corev1.ProtocolTCP})
	policy, err := clientset.NetworkingV1().NetworkPolicies("mesh").Get(t.Context(), registration.ServeName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Len(t, policy.Spec.Ingress, 2)

	install("2", registration.InstallRelay{})
	c = deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]
	assert.Equal(t, "meshctl:2", c.Image)
	assert.Equal(t, want, relayArgs(&c), "an upgrade keeps what was chosen")
	assert.Equal(t, s.ResourceVersion, service().ResourceVersion)

	install("2", registration.InstallRelay{ServiceType: "ClusterIP", Hosts: []string{}})
	c = deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]
	assert.Equal(t, want[:8], relayArgs(&c))
	assert.Equal(t, corev1.ServiceTypeClusterIP, service().Spec.Type)

	off := install("2", registration.InstallRelay{Enabled: ptr.To(false)})
	require.Len(t, off.Notes, 1)
	assert.Contains(t, off.Notes[0], "Service mesh/gloo-mesh-mgmt-server stays")
	c = deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]
	assert.Nil(t, relayArgs(&c))
	assert.Empty(t, c.Env)
	install("2", registration.InstallRelay{Enabled: ptr.To(true)})

	for name, labels := range map[string]map[string]string{
		snapshot.RelayServerSecret: {snapshot.ManagedByLabel: snapshot.ManagedBy}, snapshot.RelayRootSecret: nil,
	} {
		_, err := clientset.CoreV1().Secrets("mesh").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err = clientset.CoreV1().Secrets("mesh").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayRecordPrefix + "cluster-2"}, Type: snapshot.RelayRecordType,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	u, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: config, Namespace: "mesh"})
	require.NoError(t, err)
	report, err := u.Run(t.Context())
	require.NoError(t, err)
	assert.Contains(t, report.Notes, "Secret mesh/relay-root-tls-secret is kept: it was not created by meshctl")
	finishNamespaces(t, config)
	assert.Equal(t, []string{"Namespace /mesh", "Secret mesh/relay-root-tls-secret"}, without(inventory(t, config), before))
}

// TestInstallRelayRefuses: nothing is written of what cannot be.
func TestInstallRelayRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relay registration.InstallRelay
		want  string
	}{
		"a type":            {registration.InstallRelay{Enabled: ptr.To(true), ServiceType: "ExternalName"}, "want one of LoadBalancer, NodePort, ClusterIP"},
		"a host and port":   {registration.InstallRelay{Enabled: ptr.To(true), Hosts: []string{"relay.example.com:9900"}}, "without a port"},
		"names of no relay": {registration.InstallRelay{Hosts: []string{"relay.example.com"}}, "enable it with --relay"},
		"a type of none":    {registration.InstallRelay{Enabled: ptr.To(false), ServiceType: "NodePort"}, "enable it with --relay"},
	} {
		_, err := registration.InstallManifests(registration.InstallOptions{Image: "meshctl:1", Relay: c.relay})
		assert.ErrorContains(t, err, c.want, name)
	}
}
