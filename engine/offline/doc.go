// Package offline reads an Input from a folder of YAML and writes an Output as
// one: clusters as directories.
//
//	DIR/management/**.yaml   the management plane: policies, VirtualMeshes, ...
//	DIR/<cluster>/**.yaml    one folder for each cluster: Services, Deployments, ...
//
// Files end in .yaml, .yml or .json, may hold several documents, and may hold
// Lists, so that the output of `kubectl get -o yaml` can be dropped in. Names
// that begin with a dot are left out.
//
// Two kinds of documents, of apiVersion offline/v1, describe the folder itself.
// Both are optional and may stand in any file of the folder they describe:
//
//	kind: Cluster            # in a cluster's folder
//	spec:
//	  domain: cluster.local  # DNS suffix of Services; beats the KubernetesCluster's
//	  sync: stale            # unsynced, stale or synced (the default)
//	  reason: no answer from https://10.0.0.1:6443
//
//	kind: Management         # in the folder management
//	spec:
//	  namespace: gloo-mesh   # where the management plane is installed
//	  refuseIntersecting: true # as --disallow-intersecting-config
//	  failures:              # writes that API servers refused
//	  - ref: {kind: VirtualService, cluster: c1, namespace: bookinfo, name: reviews}
//	    code: WriteFailed    # the default; or ForeignObject
//	    message: admission webhook denied the request
//	    parents:             # the policies to be told
//	    - {kind: TrafficPolicy, namespace: bookinfo, name: slow}
//
// A KubernetesCluster without a folder is a registered cluster that cannot be
// read: it is frozen. Clusters without a KubernetesCluster are as good as others.
package offline
