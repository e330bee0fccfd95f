package e2e

// soakApplication has pods for the Services that are edited, and the Service whose name,
// joined with that of its namespace, somebody else tries to get.
const soakApplication = `apiVersion: apps/v1
kind: Deployment
metadata: {name: soak-v1, namespace: bookinfo}
spec:
  selector: {matchLabels: {app: soak}}
  template:
    metadata: {labels: {app: soak, version: v1}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: corner-tenant, labels: {istio-injection: enabled}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: corner-tenant}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: corner-tenant}
spec: {selector: {app: shop}, ports: [{name: http, port: 80}]}
`

// guest may edit namespace bookinfo.
const guest = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: bookinfo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-edit"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: guest}]
`

// lax lets everybody call Services with a label that none has at first.
const lax = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: lax, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {open: "true"}}}]
`

// openOverOthers is a Service over the pods of ratings with that label.
const openOverOthers = `apiVersion: v1
kind: Service
metadata: {name: open, namespace: bookinfo, labels: {open: "true"}}
spec: {selector: {app: ratings}, ports: [{name: http, port: 9080}]}
`

// sameName has the name of shop in corner-tenant, once the parts are joined.
const sameName = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-corner, namespace: tenant}
spec:
  selector: {matchLabels: {app: shop-corner}}
  template:
    metadata: {labels: {app: shop-corner, sidecar.istio.io/inject: "true"}}
    spec: {containers: [{name: app, image: app}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop-corner, namespace: tenant}
spec: {selector: {app: shop-corner}, ports: [{name: http, port: 80}]}
`

// handWritten are objects of others, some of which look like ours.
const handWritten = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: by-hand, namespace: corner-tenant}
spec: {hosts: [by-hand.example], http: [{route: [{destination: {host: shop}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: by-hand, namespace: corner-tenant, labels: {owner.networking.mesh.gloo.solo.io: somebody-else}}
spec: {host: by-hand.example}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: by-hand, namespace: corner-tenant, labels: {owner.networking.mesh.gloo.solo.io: somebody-else, cluster.multicluster.solo.io: cluster-1}}
spec: {hosts: [by-hand.example], location: MESH_EXTERNAL, resolution: DNS, ports: [{name: http, number: 80, protocol: HTTP}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: by-hand, namespace: corner-tenant}
spec: {action: ALLOW, selector: {matchLabels: {app: nobody}}, rules: [{}]}
`

// marker is a TrafficPolicy by whose timeout a run sees that edits arrive.
const marker = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: marker, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {app: ratings}, namespaces: [bookinfo]}}]
  policy: {requestTimeout: %s}
`

// ownRoute is a user's VirtualService with the name that ours has because of onOwnRoute.
const ownRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: corner-tenant}
spec: {hosts: [shop], http: [{route: [{destination: {host: shop}}]}]}
`

const onOwnRoute = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: shop, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: shop, namespace: corner-tenant, clusterName: cluster-1}]}}]
  policy: {requestTimeout: 3s}
`
