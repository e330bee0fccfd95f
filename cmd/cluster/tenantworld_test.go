package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// team is the namespace of the tenants in each cluster.
const team = "bookinfo"

// tenantWorld has three clusters with Istio and bookinfo, of one VirtualMesh: the management cluster, which is registered as well,
// cluster-2, whose agent dials in, and cluster-3, which serve dials.
type tenantWorld struct {
	*relayWorld
	clients map[string]*kube.Client
	// agentLog is that of the agent of cluster-2, and stopAgent ends it.
	agentLog  *sandboxtest.Buffer
	stopAgent func()
	stopServe func()
}

func newTenantWorld(t *testing.T) *tenantWorld {
	t.Helper()
	w := &tenantWorld{relayWorld: newRelayClusters(t, 3), clients: map[string]*kube.Client{}, agentLog: &sandboxtest.Buffer{}}
	w.quick()
	var group sync.WaitGroup
	for i, server := range w.servers {
		client, err := kube.New(server.Name(), w.configs[server.Name()])
		require.NoError(t, err)
		w.clients[server.Name()] = client
		group.Go(func() { w.installMesh(client, w.configs[server.Name()], i+1) })
	}
	group.Wait()
	w.stopServe = w.serve()
	sandboxtest.Apply(t, w.management, []byte(hub))
	for _, cluster := range []string{"cluster-1", "cluster-3"} {
		require.NoError(t, w.meshctl("register", cluster, "--remote-context", cluster), "%s", w.serveLog)
	}
	w.stopAgent = w.registered(w.agentLog)
	waittest.NoError(t, "what the management cluster says is in force", func() error {
		is := w.written("")
		for _, cluster := range []string{"cluster-1", "cluster-2", "cluster-3"} {
			wanted := []string{"VirtualService other/ratings", "AuthorizationPolicy other/ratings", "Sidecar other/ratings-v1", "VirtualService bookinfo/reviews"}
			for far := range w.clients {
				if far != cluster {
					wanted = append(wanted, federated(far), "VirtualService istio-system/ratings-other-"+far, "VirtualService istio-system/reviews-bookinfo-"+far)
				}
			}
			for _, name := range wanted {
				if is[cluster+" "+name] == "" {
					return fmt.Errorf("there is no %s in %s", name, cluster)
				}
			}
		}
		return nil
	})
	return w
}

// federated is what makes ratings of a cluster reachable from another one.
func federated(cluster string) string {
	return "ServiceEntry istio-system/ratings.bookinfo.svc." + cluster + ".global"
}

// quick has clients not wait for each other.
func (w *tenantWorld) quick() {
	for _, config := range w.configs {
		config.QPS, config.Burst = -1, -1
	}
}

// as is a client of a cluster for a user.
func (w *tenantWorld) as(cluster, user string) *kube.Client {
	w.t.Helper()
	config := rest.CopyConfig(w.configs[cluster])
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := kube.New(cluster, config)
	require.NoError(w.t, err)
	return client
}

// istioKinds are the kinds of Istio that serve reads or writes in clusters.
func istioKinds() []snapshot.Kind {
	return slices.DeleteFunc(snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.Watch), func(k snapshot.Kind) bool {
		return !strings.HasSuffix(k.Info().Group, ".istio.io")
	})
}

// installMesh makes a cluster look like one with Istio, bookinfo, and ratings of somebody else in namespace other. Nothing runs in it.
func (w *tenantWorld) installMesh(client *kube.Client, config *rest.Config, number int) {
	objects := append(meshTypes(), meshObjects(w.t, number)...)
	waittest.NoError(w.t, "the mesh is there", func() error { return client.Apply(w.t.Context(), objects...) })
	for _, o := range objects {
		if o.Object["status"] != nil {
			waittest.NoError(w.t, "its status is written", func() error { return client.ApplyStatus(w.t.Context(), o) })
		}
	}
	types := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	waittest.NoError(w.t, "the kinds of Istio are served", func() error {
		list, err := types.List(w.t.Context(), metav1.ListOptions{})
		for i := range list.Items {
			if len(list.Items[i].Status.StoredVersions) == 0 {
				err = fmt.Errorf("%s is not", list.Items[i].Name)
			}
		}
		return err
	})
}

// meshTypes define the kinds of Istio, which take whatever a spec is.
func meshTypes() (out []*unstructured.Unstructured) {
	yes := true
	loose := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	for _, k := range istioKinds() {
		info := k.Info()
		definition := &apiextensionsv1.CustomResourceDefinition{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: info.Resource + "." + info.Group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: info.Group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: info.Kind, Plural: info.Resource, ListKind: info.Kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: info.Version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": loose, "status": loose},
					}},
				}},
			},
		}
		raw, err := json.Marshal(definition)
		object := &unstructured.Unstructured{}
		if err == nil {
			err = object.UnmarshalJSON(raw)
		}
		if err != nil {
			panic(err) // these types are written as JSON everywhere
		}
		unstructured.RemoveNestedField(object.Object, "status")
		out = append(out, object)
	}
	return out
}

// injector is the evidence of a control plane; without rules it is never asked. The user of the tenants may do everything in their
// namespace, and nothing elsewhere.
const injector = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector, istio.io/rev: default}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: istio-system}}
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Ignore
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: everything, namespace: bookinfo}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: everything, namespace: bookinfo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: everything}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tina}]
`

// meshObjects are those of the bookinfo case, with addresses of the cluster's own.
func meshObjects(t *testing.T, number int) []*unstructured.Unstructured {
	t.Helper()
	var manifests []string
	for _, namespace := range []string{"istio-system", team, "other"} {
		manifests = append(manifests, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	}
	files, err := filepath.Glob("../../testdata/translate/bookinfo/in/cluster-1/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	accounts := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		// The API server gives out UIDs itself.
		text := regexp.MustCompile(`(?m)^  uid: .*\n`).ReplaceAllString(string(raw), "")
		text = strings.NewReplacer("10.1.", fmt.Sprintf("10.%d.", number), "172.18.0.", fmt.Sprintf("172.18.%d.", number)).Replace(text)
		manifests = append(manifests, text)
		for _, account := range regexp.MustCompile(`serviceAccountName: (\S+)`).FindAllStringSubmatch(text, -1) {
			accounts[account[1]] = true
		}
		if filepath.Base(file) == "ratings.yaml" {
			other := strings.ReplaceAll(text, "namespace: "+team, "namespace: other")
			manifests = append(manifests, strings.ReplaceAll(other, fmt.Sprintf("10.%d.1.", number), fmt.Sprintf("10.%d.2.", number)))
		}
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		for _, namespace := range []string{"istio-system", team, "other"} {
			manifests = append(manifests, fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n", account, namespace))
		}
	}
	objects, err := kube.Decode([]byte(strings.Join(append(manifests, injector), "\n---\n")))
	require.NoError(t, err)
	for _, o := range objects {
		if o.GetKind() == "ReplicaSet" { // the API server wants a container
			containers := []any{map[string]any{"name": "app", "image": "example.com/app"}}
			require.NoError(t, unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"))
		}
	}
	return objects
}

// outside are all objects of all clusters that are not in the namespace of the tenants of a cluster, as text. What describes that
// namespace, and what changes by itself, is left out.
func (w *tenantWorld) outside(cluster string) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for name, client := range w.clients {
		wanted := func(r schema.GroupVersionResource) bool {
			return r.Resource != "leases" && r.Resource != "events" && r.Group != "apiregistration.k8s.io" && r.Group != "internal.apiserver.k8s.io"
		}
		require.NoError(w.t, client.Each(w.t.Context(), wanted, func(r schema.GroupVersionResource, o *unstructured.Unstructured) {
			described := strings.HasPrefix(r.Group, "discovery.mesh.") && strings.Contains(o.GetName(), "-"+team+"-"+cluster)
			// The agent keeps a copy of all that stands in its cluster, and serve a record of what changed.
			described = described || r.Resource == "configmaps" && (strings.HasPrefix(o.GetName(), "meshctl-relay-output-") || o.GetName() == "meshctl-changes")
			if name == cluster && o.GetNamespace() == team || described {
				return
			}
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
			if r.Resource == "kubernetesclusters" || r.Group == "apiextensions.k8s.io" {
				unstructured.RemoveNestedField(o.Object, "status")
			}
			raw, err := o.MarshalJSON()
			require.NoError(w.t, err)
			// A cluster that is slow for a moment has all of its policies in force anew.
			out[fmt.Sprintf("%s %s %s/%s", name, r.Resource, o.GetNamespace(), o.GetName())] = sinceWhen.ReplaceAllString(string(raw), "")
		}))
	}
	return out
}

// sinceWhen is the time of a condition.
var sinceWhen = regexp.MustCompile(`"lastTransitionTime":"[^"]*",`)

// written are the versions of the objects of Istio outside of the namespace of the tenants of a cluster: they tell each write.
func (w *tenantWorld) written(cluster string) map[string]string {
	w.t.Helper()
	var mu sync.Mutex
	var group errgroup.Group
	out := map[string]string{}
	for name, client := range w.clients {
		for _, k := range istioKinds() {
			group.Go(func() error {
				items, err := client.List(w.t.Context(), k.GroupVersionResource(), "")
				mu.Lock()
				defer mu.Unlock()
				for i := range items {
					if o := &items[i]; name != cluster || o.GetNamespace() != team {
						out[fmt.Sprintf("%s %s %s/%s", name, k, o.GetNamespace(), o.GetName())] = string(o.GetUID()) + " " + o.GetResourceVersion()
					}
				}
				return err
			})
		}
	}
	require.NoError(w.t, group.Wait())
	return out
}
