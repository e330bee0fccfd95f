package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestASecretAloneRegistersNothing: it is listed as nobody's.
func TestASecretAloneRegistersNothing(t *testing.T) {
	t.Parallel()
	const namespace, name = "nobodys", "istiod-istio-system-cluster-1-gateways"
	config := registrationtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, namespace)
	data, err := cluster.EncodeKubeconfig(name, &cluster.Credential{Server: "https://127.0.0.1:39443", Token: "a"})
	require.NoError(t, err)
	_, err = sandboxtest.Clientset(t, config).CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: cluster.SecretType, Data: map[string][]byte{"kubeconfig": data},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: config, MgmtNamespace: namespace, Timeout: waittest.Limit()})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, name, all[0].Name)
	assert.Equal(t, snapshot.HealthUnregistered, all[0].Health)
	assert.Empty(t, all[0].Server, "nobody asks it")
	assert.Contains(t, all[0].Reason, "no KubernetesCluster names Secret nobodys/istiod-istio-system-cluster-1-gateways")
}
