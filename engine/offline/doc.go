// Package offline reads an Input from a folder of YAML and writes an Output as
// one: clusters as directories.
//
//	DIR/management/**.yaml   the management plane: policies, VirtualMeshes, ...
//	DIR/CLUSTER/**.yaml      one folder for each cluster: Services, Deployments, ...
//
// Files end in .yaml, .yml or .json. A file has any number of documents and
// Lists, such as the output of `kubectl get -o yaml`. Names that begin with a dot
// are ignored.
//
// Two kinds of documents, of apiVersion offline/v1, describe the folder itself.
// Both are optional and may be in any file of the folder:
//
//	kind: Cluster            # in a cluster's folder
//	spec:
//	  domain: cluster.local  # DNS suffix of Services; overrides the KubernetesCluster's
//	  sync: stale            # unsynced, stale or synced (the default)
//	  cause: ServerUnanswered # as in the status of a KubernetesCluster
//	  reason: no answer from https://10.0.0.1:6443
//
//	kind: Management         # in the folder management
//	spec:
//	  namespace: gloo-mesh     # where the management plane is installed
//	  refuseIntersecting: true # as --disallow-intersecting-config; by default what
//	                           # the statuses of the KubernetesClusters say
//	  failures:                # writes that API servers refused
//	  - ref: {kind: VirtualService, cluster: c1, namespace: bookinfo, name: reviews}
//	    code: WriteFailed      # the default; or ClusterAwaited, ForeignObject
//	    message: admission webhook denied the request
//	    parents:               # the policies whose status reports it
//	    - {kind: TrafficPolicy, namespace: bookinfo, name: slow}
//
// Save writes these folders, and with WriteArchive an archive of them. Then the documents also have
// what only a server knows: for a Cluster webhooksUnknown and unread, for the Management planeID, clusterUID,
// version, gone, roots, recorded and served.
//
// A folder may be based on other manifests. Both kinds have these fields:
//
//	spec:
//	  bases: [../cluster-1, ../../shared/istio.yaml] # folders or files, relative to this folder
//	  without:                                       # objects of the bases to leave out
//	  - {kind: Pod, namespace: bookinfo, name: ratings-v1-0}
//
// An object that is in the folder and in a base is a JSON merge patch of the
// base's object: fields that it omits are kept, null removes a field, lists are
// replaced. Two bases must not have the same object. A base must not have bases
// or other documents of offline/v1.
//
// A registered cluster without a folder cannot be read, so it is frozen. A
// cluster with a folder needs no KubernetesCluster.
//
// # Golden cases
//
// A folder testdata/discovery/CASE or testdata/translate/CASE is a golden case.
// Write the manifests in in/ and, if needed, base.yaml and empty files in
// describe/; `make golden` writes the rest:
//
//	in/                      an input, as above
//	out/CLUSTER/KIND.yaml    objects of the Output; CLUSTER may be management
//	statuses.yaml            statuses of the Output, by object
//	issues.yaml              issues of Load and of the Output
//	base.yaml                the case that this one is based on, see below
//	describe/KIND-NAME.txt   the output of `meshctl describe KIND NAME`
//	describe/KIND.txt        the output of `meshctl describe KIND`
//	describe/*.yaml          the same with -o yaml
//
// Clusters share objects through bases: testdata/clusters has control planes,
// gateways and services.
//
// A test compares the files with everything that follows from the input: it
// fails for an object, status or issue that is unexpected, missing or different.
// The files do not repeat what other cases prove:
//
//   - A case with a folder in/management omits the objects and statuses that are
//     the same without that folder: what was discovered. The cases of
//     testdata/discovery have no such folder and prove these.
//   - A case with `base: ../CASE` in base.yaml omits what is the same in that
//     case. `make golden` adds the list `without`: what the base has and this
//     case does not. The base itself must not have a base.
//   - In a status, `spec: as written` is the spec of the policy in the input.
package offline
