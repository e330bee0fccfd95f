package e2e

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
)

// tenancy gives user tenant the rights of ClusterRole edit in a namespace, and those to configure Istio there. The
// sandbox has no controller that aggregates them.
const tenancy = `apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-edit"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-view"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: istio, namespace: tenant}
rules: [{apiGroups: [networking.istio.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: istio, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: istio}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
`

// forgeries are what a tenant makes: a control plane with the revision of the real one, and
// gateways with addresses of the tenant's choice.
const forgeries = `apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: tenant, labels: {app: istiod}}
spec:
  replicas: 0
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec:
      containers: [{name: discovery, image: "docker.io/istio/pilot:1.31.1"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: osm-controller, namespace: tenant}
spec:
  replicas: 0
  selector: {matchLabels: {app: osm-controller}}
  template:
    metadata: {labels: {app: osm-controller}}
    spec:
      containers: [{name: osm-controller, image: "docker.io/openservicemesh/osm-controller:v1.2.4"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: eastwest, namespace: tenant}
spec:
  replicas: 0
  selector: {matchLabels: {istio: eastwestgateway}}
  template:
    metadata: {labels: {istio: eastwestgateway, sidecar.istio.io/inject: "true"}}
    spec:
      containers: [{name: istio-proxy, image: auto}]
---
apiVersion: v1
kind: Service
metadata: {name: eastwest, namespace: tenant, labels: {istio: eastwestgateway}}
spec:
  selector: {istio: eastwestgateway}
  externalIPs: [203.0.113.66]
  ports: [{name: tls, port: 15443, targetPort: 15443}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress, namespace: tenant}
spec:
  replicas: 0
  selector: {matchLabels: {istio: ingressgateway}}
  template:
    metadata: {labels: {istio: ingressgateway, sidecar.istio.io/inject: "true"}}
    spec:
      containers: [{name: istio-proxy, image: auto}]
---
apiVersion: v1
kind: Service
metadata: {name: ingress, namespace: tenant, labels: {istio: ingressgateway}}
spec:
  selector: {istio: ingressgateway}
  ports: [{name: tls, port: 15443, targetPort: 15443}]
`

// shadow leads requests for a service of another cluster to a pod of the tenant's choice.
const shadow = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: shadow, namespace: tenant}
spec:
  hosts: [%s]
  exportTo: ["*"]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9080, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.0.5, labels: {security.istio.io/tlsMode: istio, version: v3}}]
`

// resistsTenant: what the editor of one namespace makes changes no object of others in any
// cluster, and opens nothing.
func (w *environment) resistsTenant() {
	w.apply("cluster-1", []byte(tenancy))
	config, err := w.cluster("cluster-1").Config()
	require.NoError(w.t, err)
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tenant"}
	tenant, err := kube.New("cluster-1", config)
	require.NoError(w.t, err)
	_, err = tenant.List(w.t.Context(), kube.Deployments(), "istio-system")
	require.True(w.t, apierrors.IsForbidden(err), "%v", err)

	edit := func(timeout string) {
		w.patchPolicy(`[{"op":"add","path":"/spec/policy/requestTimeout","value":"` + timeout + `"}]`)
		w.awaitTimeout(timeout)
	}
	edit("8s")
	w.until("routes that waited are written, too", (&soak{environment: w}).differs)
	before := w.generated()
	w.until("the tenant may edit", func(ctx context.Context) error { return tenant.ApplyYAML(ctx, []byte(forgeries)) })
	for _, word := range []string{"ControlPlaneIgnored", "osm-controller", "GatewayIgnored"} {
		w.until(word+" is reported", func(context.Context) error { return w.hasIssue(word) })
	}
	// What follows from an edit is written after what would follow from the forgeries.
	edit("9s")
	edit("8s")
	w.until("routes that waited are written again", (&soak{environment: w}).differs)
	assert.Equal(w.t, before, w.generated())
	require.NoError(w.t, tenant.DeleteYAML(w.t.Context(), []byte(forgeries)))
	require.NoError(w.t, tenant.ApplyYAML(w.t.Context(), fmt.Appendf(nil, shadow, "api.example.com")), "it may configure Istio")
	require.ErrorContains(w.t, tenant.ApplyYAML(w.t.Context(), fmt.Appendf(nil, shadow, "reviews.bookinfo.svc.cluster-2.global")),
		"names below global are those of services that meshctl federates")
	w.patchPolicy(`[{"op":"remove","path":"/spec/policy/requestTimeout"}]`)
	w.delete("cluster-1", core("namespaces"), "", "tenant")
}

// generated are the specs of all that meshctl has written to the clusters.
func (w *environment) generated() map[string]any {
	w.t.Helper()
	out := map[string]any{}
	for cluster, client := range w.clients {
		for _, kind := range []schema.GroupVersionResource{
			kube.Networking("serviceentries"), kube.Networking("gateways"), kube.Networking("virtualservices"),
			kube.Networking("destinationrules"), kube.Networking("sidecars"), kube.Security("authorizationpolicies"),
		} {
			objects, err := client.List(w.t.Context(), kind, "")
			require.NoError(w.t, err)
			for _, o := range objects {
				if ours(&o) {
					out[cluster+" "+kind.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object["spec"]
				}
			}
		}
	}
	return out
}
