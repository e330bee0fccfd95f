package crds_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
)

// installing lets one test install the definitions and the others wait for it.
var installing sync.Mutex

// server is an API server that has the definitions.
type server struct {
	objects dynamic.Interface
	// namespace belongs to one test.
	namespace string
	rest      *rest.Config
	plurals   map[schema.GroupVersionKind]schema.GroupVersionResource
}

// install returns an API server that has the definitions, and a new namespace. Installing again changes nothing.
func install(t *testing.T) *server {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	config := rest.CopyConfig(sandboxtest.APIServer(t))
	config.QPS = -1
	s := &server{rest: config, plurals: map[schema.GroupVersionKind]schema.GroupVersionResource{}}
	var err error
	s.objects, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	definitions, err := apiextensions.NewForConfig(config)
	require.NoError(t, err)
	for _, crd := range all(t) {
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
		version := crd.Spec.Versions[0].Name
		s.plurals[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}] =
			schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural}
	}
	for _, crd := range all(t) {
		waitEstablished(t, definitions, crd.Name)
	}
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	// A name that is free, so that tests may run again on the same server.
	namespace, err := core.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "crds-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.namespace = namespace.Name
	return s
}

func waitEstablished(t *testing.T, definitions apiextensions.Interface, name string) {
	t.Helper()
	var last *apiextensionsv1.CustomResourceDefinition
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, waittest.Limit(), true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return isTrue(last, apiextensionsv1.Established) && isTrue(last, apiextensionsv1.NamesAccepted), nil
	})
	require.NoError(t, err, "%s: %v", name, last)
	assert.False(t, isTrue(last, apiextensionsv1.NonStructuralSchema), "%s: %v", name, last.Status.Conditions)
}

func isTrue(crd *apiextensionsv1.CustomResourceDefinition, sort apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == sort {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

func (s *server) resource(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	plural, ok := s.plurals[object.GroupVersionKind()]
	require.True(t, ok, "%s is not a kind of ours", object.GroupVersionKind())
	return s.objects.Resource(plural).Namespace(s.namespace)
}

func (s *server) tryCreate(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	object = object.DeepCopy()
	object.SetNamespace(s.namespace)
	_, err := s.resource(t, object).Create(t.Context(), object,
		metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	return err
}

// Manifests of every shape are accepted and stored as they were written, and so are statuses.
func TestAPIServerAcceptsFixtures(t *testing.T) {
	t.Parallel()
	s := install(t)
	for _, f := range readFixtures(t, "accepted") {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			object := f.object.DeepCopy()
			object.SetNamespace(s.namespace)
			objects := s.resource(t, object)
			created, err := objects.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err)
			if status, ok := f.object.Object["status"]; ok {
				created.Object["status"] = status
				_, err = objects.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
				require.NoError(t, err)
			}
			stored, err := objects.Get(t.Context(), object.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			assertSame(t, f.object.Object["spec"], stored.Object["spec"])
			assertSame(t, f.object.Object["status"], stored.Object["status"])
		})
	}
}

func assertSame(t *testing.T, want, got any) {
	t.Helper()
	wantJSON, err := json.Marshal(want)
	require.NoError(t, err)
	gotJSON, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(wantJSON), string(gotJSON))
}

// A bad manifest is refused with a sentence that says what is wrong and what to do.
func TestAPIServerRefusesFixtures(t *testing.T) {
	t.Parallel()
	s := install(t)
	for _, f := range readFixtures(t, "refused") {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			err := s.tryCreate(t, f.object)
			require.Error(t, err)
			for _, sentence := range f.expect {
				assert.ErrorContains(t, err, sentence)
			}
			assert.NotContains(t, err.Error(), "rule evaluation error")
		})
	}
}

// One duration that Go cannot parse would make every object of its kind unreadable, so none may get in.
func TestAPIServerAcceptsOnlyDurationsThatGoParses(t *testing.T) {
	t.Parallel()
	s := install(t)
	tests := map[string]bool{
		"0": true, "0s": true, "100ms": true, "0.100s": true, "1.5h": true, "1h30m": true, "1h30m0s": true,
		"10us": true, "10µs": true, "5ns": true, "99999h": true, "9999999m": true, "999999999s": true,
		"99999h99999h99999h99999h": true,
		"":                         false, "5": false, "soon": false, "-1s": false, "+1s": false, "1 s": false, "1s ": false, "1d": false, "1S": false,
		"PT1S": false, "1s,": false, "9999999h": false, "9223372036854775807s": false, "1e3s": false, "s": false,
		strings.Repeat("1h", 20): false,
	}
	for text, accepted := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			policy := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
				"metadata": map[string]any{"name": "timeout"},
				"spec":     map[string]any{"policy": map[string]any{"requestTimeout": text}},
			}}
			err := s.tryCreate(t, policy)
			if !accepted {
				require.ErrorContains(t, err, "spec.policy.requestTimeout")
				return
			}
			require.NoError(t, err)
			_, err = time.ParseDuration(text)
			assert.NoError(t, err)
		})
	}
}

// What `kubectl get` shows comes from the right fields.
func TestPrinterColumns(t *testing.T) {
	t.Parallel()
	s := install(t)
	tests := map[string]map[string]any{
		"mesh-istio":                            {"Cluster": "east", "Version": "1.31.1", "VirtualMesh": "everything", "Gateway": "gateway-istio-system-east"},
		"mesh-osm":                              {"Version": "v1.2.4"},
		"workload-every-field":                  {"Cluster": "east", "Workload-Namespace": "shop", "Service-Account": "front", "Mesh": "istio"},
		"destination-kube-service":              {"Cluster": "east", "Service-Namespace": "shop", "Federated-As": "cart.shop.svc.east.global", "First-Traffic-Policy": "slow", "First-Access-Policy": "front"},
		"trafficpolicy-every-field":             {"State": "INVALID", "Destinations": float64(2), "Problems": float64(1), "Error": "not in force as written in cluster-2"},
		"accesspolicy-every-field":              {"State": "ACCEPTED", "Destinations": float64(1)},
		"virtualmesh-generated-root-permissive": {"Access": "DISABLED"},
		"virtualmesh-every-field":               {"State": "PENDING", "Meshes": float64(1), "Federated": float64(1), "Access": "ENABLED"},
		"kubernetescluster-every-field":         {"State": "ACCEPTED", "Secret": "east", "Domain": "east.example"},
		"issuedcertificate-managed":             {"State": "REQUESTED", "Secret": "cacerts", "Host": "spiffe://cluster.local/ns/istio-system/sa/istiod"},
		"podbouncedirective-every-field":        {"First-Namespace": "istio-system"},
		"virtualdestination-static":             {"Hostname": "cart.static", "Port": float64(80)},
		"role-consumer":                         {"First-Traffic-Actions": `["RETRIES","REQUEST_TIMEOUT","FAULT_INJECTION"]`},
		"rolebinding-user-and-group":            {"Role": "consumer", "First-Subject": "ada"},
	}
	seen := 0
	for _, f := range readFixtures(t, "accepted") {
		want, ok := tests[f.name]
		if !ok {
			continue
		}
		seen++
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			object := f.object.DeepCopy()
			object.SetNamespace(s.namespace)
			objects := s.resource(t, object)
			created, err := objects.Create(t.Context(), object, metav1.CreateOptions{})
			require.NoError(t, err)
			if status, ok := f.object.Object["status"]; ok {
				created.Object["status"] = status
				_, err = objects.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
				require.NoError(t, err)
			}
			got := s.row(t, object)
			for column, cell := range want {
				assert.Equal(t, cell, got[column], "column %s", column)
			}
			assert.Contains(t, got, "Age")
		})
	}
	assert.Equal(t, len(tests), seen, "a fixture named in the table does not exist")
}

// row is what `kubectl get` shows of an object, by column.
func (s *server) row(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	config := dynamic.ConfigFor(s.rest)
	plural := s.plurals[object.GroupVersionKind()]
	config.GroupVersion = &schema.GroupVersion{Group: plural.Group, Version: plural.Version}
	config.APIPath = "/apis"
	client, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	data, err := client.Get().Namespace(s.namespace).Resource(plural.Resource).Name(object.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(data, &table))
	require.Len(t, table.Rows, 1)
	row := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = table.Rows[0].Cells[i]
	}
	return row
}
