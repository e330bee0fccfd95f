package registration_test

import (
	"context"
	"regexp"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// pair is two API servers of the test's own, the first one with the types of the management plane.
func pair(t *testing.T) (management, remote *rest.Config) {
	t.Helper()
	return configs(t, registrationtest.Types(), sandboxtest.Preparation{})
}

// emptyPair is two API servers of the test's own without our types.
func emptyPair(t *testing.T) (management, remote *rest.Config) {
	t.Helper()
	return configs(t, sandboxtest.Preparation{}, sandboxtest.Preparation{})
}

func configs(t *testing.T, first, second sandboxtest.Preparation) (management, remote *rest.Config) {
	t.Helper()
	servers := sandboxtest.PreparedAPIServers(t, first, second)
	management, err := servers[0].Config()
	require.NoError(t, err)
	remote, err = servers[1].Config()
	require.NoError(t, err)
	return management, remote
}

// single is an API server of the test's own, with the types of the management plane.
func single(t *testing.T) *rest.Config {
	t.Helper()
	return configOf(t, registrationtest.Types())
}

// empty is an API server of the test's own without our types.
func empty(t *testing.T) *rest.Config {
	t.Helper()
	return configOf(t, sandboxtest.Preparation{})
}

func configOf(t *testing.T, preparation sandboxtest.Preparation) *rest.Config {
	t.Helper()
	config, err := sandboxtest.PreparedAPIServers(t, preparation)[0].Config()
	require.NoError(t, err)
	return config
}

// inventory is the resource version of every object of a server, but for those
// that a server keeps by itself.
func inventory(t *testing.T, config *rest.Config) map[string]string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	lists, err := client.ServerPreferredResources()
	require.NoError(t, err)
	objects, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	out := map[string]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			// Kept by the server for itself, and changing all the time.
			if r.Name == "leases" || r.Name == "events" || r.Name == "endpointslices" || r.Name == "endpoints" ||
				gv.Group == "apiregistration.k8s.io" || gv.Group == "flowcontrol.apiserver.k8s.io" || r.Name == "ipaddresses" || r.Name == "servicecidrs" {
				continue
			}
			found, err := objects.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, r.Name)
			for _, item := range found.Items {
				out[r.Kind+" "+item.Namespace+"/"+item.Name] = item.ResourceVersion
			}
		}
	}
	return out
}

// laterAccount is the account of a registration that was not the first one.
var laterAccount = regexp.MustCompile(`^(ServiceAccount .*)-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// without is the keys of an inventory that another does not have. Accounts are called as those of first registrations.
func without(all, those map[string]string) []string {
	out := []string{}
	for key := range all {
		if _, ok := those[key]; !ok {
			out = append(out, laterAccount.ReplaceAllString(key, "$1"))
		}
	}
	sort.Strings(out)
	return out
}

// finishNamespaces deletes terminating namespaces, as the controller manager would.
func finishNamespaces(t *testing.T, config *rest.Config) {
	t.Helper()
	clientset := sandboxtest.Clientset(t, config)
	list, err := clientset.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		if ns := &list.Items[i]; ns.DeletionTimestamp != nil {
			ns.Spec.Finalizers = nil
			_, err := clientset.CoreV1().Namespaces().Finalize(t.Context(), ns, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
	}
}

// translatedTypes are the types that the engine writes to clusters, without their schemas.
func translatedTypes() sandboxtest.Preparation {
	return sandboxtest.Preparation{Name: "translated types", Store: storeTranslatedTypes}
}

// translatedPair is a pair of which the second one has the types that the engine writes to clusters.
func translatedPair(t *testing.T) (management, remote *rest.Config) {
	t.Helper()
	return configs(t, registrationtest.Types(), translatedTypes())
}

// installTranslatedTypes is for a server that has others.
func installTranslatedTypes(t *testing.T, config *rest.Config) {
	t.Helper()
	require.NoError(t, storeTranslatedTypes(t.Context(), config))
}

func storeTranslatedTypes(ctx context.Context, config *rest.Config) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds := snapshot.Kinds(snapshot.ManagedSide, snapshot.Write)
	for _, k := range kinds {
		_, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, anySchema(k.Info()), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // by a registration
			return err
		}
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	return apiwait.PollUntilContextTimeout(ctx, 50*time.Millisecond, waittest.Limit(), true, func(ctx context.Context) (bool, error) {
		for _, k := range kinds {
			if _, err := objects.Resource(k.GroupVersionResource()).List(ctx, metav1.ListOptions{}); err != nil {
				return false, nil //nolint:nilerr // it is not served yet
			}
		}
		return true, nil
	})
}

func anySchema(info snapshot.KindInfo) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: info.Resource + "." + info.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: info.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: info.Resource, Kind: info.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: info.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}
}

var translatedTypesOnce sync.Once

// installTranslatedTypesOnce does so on the shared server.
func installTranslatedTypesOnce(t *testing.T, config *rest.Config) {
	t.Helper()
	translatedTypesOnce.Do(func() { installTranslatedTypes(t, config) })
}

// put creates an object of a kind with labels.
func put(t *testing.T, config *rest.Config, k snapshot.Kind, namespace, name string, labels, annotations map[string]string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.Info().GroupVersionKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	_, err = client.Resource(k.GroupVersionResource()).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
}

// storedConfig is a plain client of the credential in a Secret.
func storedConfig(t *testing.T, secret *corev1.Secret) *rest.Config {
	t.Helper()
	c, err := cluster.ParseKubeconfig(secret.Data[cluster.SecretKey])
	require.NoError(t, err)
	return &rest.Config{Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, ServerName: c.ServerName}}
}
