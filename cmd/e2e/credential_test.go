package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// renewsCredentials: a token that is about to expire is replaced while the
// management plane runs.
func (w *environment) renewsCredentials() {
	before := w.token("cluster-2")
	now := time.Now().UTC()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"registration.multicluster.solo.io/token-issued-at":%q,"registration.multicluster.solo.io/token-expires-at":%q}}}`,
		now.Add(-20*time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	_, err := w.dynamic["cluster-1"].Resource(core("secrets")).Namespace(mgmt).
		Patch(w.t.Context(), "cluster-2", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
	w.until("the token was replaced", func(context.Context) error {
		if w.token("cluster-2") == before {
			return fmt.Errorf("the token is the same")
		}
		return nil
	})
	assert.NotContains(w.t, w.serve.log.String(), before, "the log must not contain a token")
	assert.NotContains(w.t, w.serve.log.String(), w.token("cluster-2"), "the log must not contain a token")
	require.ErrorContains(w.t, w.hasIssue("ClusterFrozen"), "issues: [", "it is read, and not there")
	w.patchPolicy(`[{"op":"replace","path":"/spec/policy/requestTimeout","value":"9s"}]`)
	w.awaitTimeout("9s")
}

// token reads the credential that the management plane stores for a cluster.
func (w *environment) token(cluster string) string {
	w.t.Helper()
	secret, err := w.object("cluster-1", core("secrets"), mgmt, cluster)
	require.NoError(w.t, err)
	return fmt.Sprint(field(secret, "data", "kubeconfig"))
}

// use is one permission: a verb on a resource.
type use struct{ verb, group, resource string }

// usesAllPermissions compares the permissions of the account on a registered
// cluster with the audit log: every permission is used, and no request was denied.
// Kinds of a mesh that the cluster does not have are only listed.
func (w *environment) usesAllPermissions() {
	w.asksForCertificates("cluster-2")
	w.deletesPolicies()
	granted := w.withoutAbsent("cluster-2", w.granted("cluster-2"))
	assert.Equal(w.t, granted, w.used("cluster-2", agents("cluster-2"), "cluster-2"), "granted and used permissions")

	w.apply("cluster-1", manifests.VirtualMesh())
	w.until("services are federated again", func(context.Context) error {
		if len(w.names("cluster-2", kube.Networking("serviceentries"))) == 0 {
			return fmt.Errorf("there is no ServiceEntry")
		}
		return nil
	})
}

// deletesPolicies: without policies and a VirtualMesh, nothing that was translated is left.
func (w *environment) deletesPolicies() {
	w.t.Helper()
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "reviews-shift")
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "reviews-limit")
	w.delete("cluster-1", kube.Policies("accesspolicies"), mgmt, "productpage")
	w.delete("cluster-1", kube.Policies("accesspolicies"), mgmt, "reviews")
	w.delete("cluster-1", kube.Policies("virtualmeshes"), mgmt, "virtual-mesh")
	w.delete("cluster-1", dependencies(), mgmt, "reviews-only")
	translated := []schema.GroupVersionResource{
		kube.Networking("serviceentries"), kube.Networking("gateways"), kube.Networking("virtualservices"),
		kube.Networking("destinationrules"), kube.Networking("sidecars"), kube.Security("authorizationpolicies"), envoyFilters,
		certificates("issuedcertificates"), certificates("podbouncedirectives"),
	}
	w.until("all translated objects are deleted", func(context.Context) error {
		for _, cluster := range []string{"cluster-1", "cluster-2"} {
			for _, kind := range translated {
				if left := w.names(cluster, kind); len(left) > 0 {
					return fmt.Errorf("%s has %s %v", cluster, kind.Resource, left)
				}
			}
		}
		return nil
	})
}

// withoutAbsent leaves out the permissions for kinds that a cluster does not serve, which can only be listed.
func (w *environment) withoutAbsent(cluster string, granted []string) []string {
	w.t.Helper()
	absent, served := w.absent(cluster)
	expected := []string{"federatedhosts.networking.mesh.gloo.solo.io"} // which is for admission
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, ^snapshot.Access(0)) {
		if info := kind.Info(); info.Optional && !served[info.Group] {
			expected = append(expected, info.Resource+"."+info.Group)
		}
	}
	assert.ElementsMatch(w.t, expected, slices.Collect(maps.Keys(absent)), "granted, but not served")
	return slices.DeleteFunc(granted, func(permission string) bool {
		verb, resource, _ := strings.Cut(permission, " ")
		return absent[resource] && verb != "list" && verb != "watch"
	})
}

// otherKinds are objects of users of which the other cases have none.
const otherKinds = `
apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: {name: settings, namespace: gloo-mesh}
spec: {}
---
apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: VirtualDestination
metadata: {name: reviews, namespace: gloo-mesh}
spec:
  hostname: reviews.global
  port: {number: 80, protocol: http}
  virtualMesh: {name: none, namespace: gloo-mesh}
  localized: {destinationSelectors: [{kubeServiceMatcher: {labels: {app: reviews}}}]}
---
apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: all, namespace: gloo-mesh}
spec: {}
`

// serveUsesAllPermissions compares the permissions of meshctl serve in the management cluster with the audit log.
func (w *environment) serveUsesAllPermissions() {
	w.t.Helper()
	w.apply("cluster-1", []byte(otherKinds))
	w.awaitStateOf(schema.GroupVersionResource{Group: "settings.mesh.gloo.solo.io", Version: "v1", Resource: "settings"}, "settings", "ACCEPTED")
	virtualDestinations := dependencies()
	virtualDestinations.Resource = "virtualdestinations"
	w.awaitStateOf(virtualDestinations, "reviews", "INVALID")
	w.awaitStateOf(schema.GroupVersionResource{Group: "observability.enterprise.mesh.gloo.solo.io", Version: "v1", Resource: "accesslogrecords"}, "all", "PENDING")
	rarely := []string{
		"delete secrets.",    // a root, some minutes after nobody uses it any more
		"get secrets.",       // a root that another process has made at the same moment
		"create configmaps.", // the identity of the management plane, unless a registration has made it
	}
	var granted []string
	for _, permission := range grantedBy(w.rolesOf("cluster-1", func(name string) bool {
		return name == registration.ServeName || name == registration.ServeName+"-"+mgmt
	})) {
		if !slices.Contains(rarely, permission) {
			granted = append(granted, permission)
		}
	}
	used := slices.DeleteFunc(w.used("cluster-1", mgmt, registration.ServeName), func(permission string) bool { return slices.Contains(rarely, permission) })
	assert.Equal(w.t, granted, used, "granted and used permissions of meshctl serve")
}

// granted lists the permissions of the account of a cluster. The agent has others, and so has meshctl serve.
func (w *environment) granted(cluster string) []string {
	w.t.Helper()
	return grantedBy(w.rolesOf(cluster, func(name string) bool {
		return !strings.HasPrefix(name, "meshctl-agent-") && name != registration.ServeName && name != registration.ServeName+"-"+mgmt
	}))
}

func grantedBy(rules []rbacv1.PolicyRule) []string {
	all := map[use]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[use{verb, group, resource}] = true
				}
			}
		}
	}
	return spell(all)
}

// absent are the resources, with their groups, that are in the roles but that the
// cluster does not serve; groups are those that it serves anything of.
func (w *environment) absent(cluster string) (resources, groups map[string]bool) {
	w.t.Helper()
	config, err := w.cluster(cluster).Config()
	require.NoError(w.t, err)
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
	require.NoError(w.t, err)
	served, groups := map[string]bool{}, map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(w.t, err)
		groups[gv.Group] = true
		for _, r := range list.APIResources {
			served[r.Name+"."+gv.Group] = true
		}
	}
	resources = map[string]bool{}
	for _, permission := range w.granted(cluster) {
		if _, resource, _ := strings.Cut(permission, " "); !served[resource] {
			resources[resource] = true
		}
	}
	return resources, groups
}

// rolesOf are the rules of the roles that meshctl created, of those names.
func (w *environment) rolesOf(cluster string, is func(name string) bool) []rbacv1.PolicyRule {
	w.t.Helper()
	var roles []unstructured.Unstructured
	var out []rbacv1.PolicyRule
	for _, kind := range []string{"clusterroles", "roles"} {
		list, err := w.clients[cluster].List(w.t.Context(), schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind}, "")
		require.NoError(w.t, err)
		roles = append(roles, list...)
	}
	for _, role := range roles {
		if role.GetLabels()["app.kubernetes.io/managed-by"] != "meshctl" || !is(role.GetName()) {
			continue
		}
		for _, raw := range role.Object["rules"].([]any) {
			var rule rbacv1.PolicyRule
			require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(raw.(map[string]any), &rule))
			out = append(out, rule)
		}
	}
	return out
}

// used lists the permissions that an account of a namespace used in a cluster, or that of a later registration, according to
// the audit log. No request may have been denied.
func (w *environment) used(cluster, namespace, account string) []string {
	w.t.Helper()
	all, refused := map[use]bool{}, map[use]bool{}
	for _, event := range w.audited(cluster, namespace, account) {
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		if strings.HasPrefix(resource, "selfsubject") {
			continue // anyone may do that
		}
		if resource == "configmaps" && (event.Verb == "list" || event.Verb == "watch") {
			assert.Regexp(w.t, "fieldSelector=metadata.name%3D(istio|meshctl-trust&)", event.RequestURI, "only ConfigMaps of Istio and the record of trust are asked for, by name")
		}
		if event.ResponseStatus.Code == 403 {
			refused[use{event.Verb, event.ObjectRef.APIGroup, resource}] = true
			continue
		}
		all[use{event.Verb, event.ObjectRef.APIGroup, resource}] = true
		if strings.Contains(event.RequestURI, "sendInitialEvents=true") {
			// A streamed list; servers without streaming get a plain list request.
			all[use{"list", event.ObjectRef.APIGroup, resource}] = true
		}
		if event.Verb == "patch" && event.ResponseStatus.Code == 201 {
			all[use{"create", event.ObjectRef.APIGroup, resource}] = true // an apply that creates an object needs both
		}
	}
	// An API server that has just started denies all requests for a moment.
	maps.DeleteFunc(refused, func(u use, _ bool) bool { return all[u] })
	assert.Empty(w.t, spell(refused), "refused by the API server")
	return spell(all)
}

// auditEvent is a request for an object, as an API server notes it (audit.k8s.io/v1, Event).
type auditEvent struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	RequestURI     string
}

// audited are the requests for objects of an account of a namespace in a cluster, or that of a later registration. Anyone may read URLs that
// are no objects.
func (w *environment) audited(cluster, namespace, account string) []auditEvent {
	w.t.Helper()
	account = "system:serviceaccount:" + namespace + ":" + account
	log, err := os.ReadFile(w.cluster(cluster).AuditLog())
	require.NoError(w.t, err)
	var out []auditEvent
	for line := range strings.Lines(string(log)) {
		var event auditEvent
		if json.Unmarshal([]byte(line), &event) == nil && (event.User.Username == account || strings.HasPrefix(event.User.Username, account+"-")) && event.ObjectRef.Resource != "" {
			out = append(out, event)
		}
	}
	return out
}

func (w *environment) cluster(name string) *local.Cluster {
	return w.clusters[slices.IndexFunc(w.clusters, func(c *local.Cluster) bool { return c.Name() == name })]
}

func spell(all map[use]bool) []string {
	var out []string
	for u := range maps.Keys(all) {
		out = append(out, u.verb+" "+u.resource+"."+u.group)
	}
	slices.Sort(out)
	return out
}

// deregisters: no object of meshctl is left in either cluster.
func (w *environment) deregisters() {
	r := w.must("cluster", "deregister", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1", "--yes")
	w.until("the objects for the deregistered cluster are deleted", func(context.Context) error {
		for _, name := range slices.Concat(w.names("cluster-1", kube.Networking("serviceentries")), w.names("cluster-1", kube.Discovery("destinations"))) {
			if strings.Contains(name, "cluster-2") {
				return fmt.Errorf("cluster-1 has %s", name)
			}
		}
		return nil
	})
	w.until("nothing is left on cluster-2", func(context.Context) error {
		if left := w.left("cluster-2"); len(left) > 0 {
			return fmt.Errorf("%v\n%s%s", left, r.stdout, r.stderr)
		}
		return nil
	})

	w.must("cluster", "deregister", "cluster-1", "--remote-context", "cluster-1", "--mgmt-context", "cluster-1", "--yes")
	w.until("no discovered object is left", func(context.Context) error {
		if left := w.names("cluster-1", kube.Discovery("destinations")); len(left) > 0 {
			return fmt.Errorf("cluster-1 has %v", left)
		}
		return nil
	})
	for _, kind := range []schema.GroupVersionResource{registered(), core("secrets")} {
		objects, err := w.clients["cluster-1"].List(w.t.Context(), kind, mgmt)
		require.NoError(w.t, err)
		for _, o := range objects {
			assert.NotContains(w.t, []string{"cluster-1", "cluster-2"}, o.GetName(), kind.Resource)
		}
	}
}

// left lists the objects of a cluster that have a label of meshctl.
func (w *environment) left(cluster string) []string {
	w.t.Helper()
	var out []string
	rbac := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: plural}
	}
	for _, kind := range []schema.GroupVersionResource{
		core("namespaces"), core("serviceaccounts"), core("secrets"), core("configmaps"),
		rbac("roles"), rbac("rolebindings"), rbac("clusterroles"), rbac("clusterrolebindings"),
		kube.Networking("serviceentries"), kube.Networking("gateways"), kube.Networking("virtualservices"),
		kube.Networking("destinationrules"), kube.Networking("sidecars"), kube.Security("authorizationpolicies"),
	} {
		objects, err := w.clients[cluster].List(w.t.Context(), kind, "")
		require.NoError(w.t, err)
		for _, o := range objects {
			if ours(&o) {
				out = append(out, kind.Resource+" "+o.GetNamespace()+"/"+o.GetName())
			}
		}
	}
	return out
}

func ours(o *unstructured.Unstructured) bool {
	labels := o.GetLabels()
	return labels["app.kubernetes.io/managed-by"] == "meshctl" || labels["owner.networking.mesh.gloo.solo.io"] != ""
}
