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
// Both are optional and may be in any file of the folder they describe:
//
//	kind: Cluster            # in a cluster's folder
//	spec:
//	  domain: cluster.local  # DNS suffix of Services; beats the KubernetesCluster's
//	  sync: stale            # unsynced, stale or synced (the default)
//	  reason: no answer from https://10.0.0.1:6443
//
//	kind: Management         # in the folder management
//	spec:
//	  namespace: gloo-mesh     # where the management plane is installed
//	  refuseIntersecting: true # as --disallow-intersecting-config; by default what
//	                           # the statuses of the KubernetesClusters say
//	  failures:                # writes that API servers refused
//	  - ref: {kind: VirtualService, cluster: c1, namespace: bookinfo, name: reviews}
//	    code: WriteFailed      # the default; or ForeignObject
//	    message: admission webhook denied the request
//	    parents:               # the policies to report it in
//	    - {kind: TrafficPolicy, namespace: bookinfo, name: slow}
//
// Both may lay their folder on others:
//
//	spec:
//	  bases: [../cluster-1, ../../shared/istio.yaml] # folders or files, relative to this folder
//	  without:                                       # objects of the bases that are left out
//	  - {kind: Pod, namespace: bookinfo, name: ratings-v1-0}
//
// An object of the folder that a base has too is merged into it, as a JSON merge
// patch is: what it does not say stays, null removes, lists are replaced. No two
// bases have the same object, and a base does not describe its folder, so it has
// no bases itself.
//
// A KubernetesCluster without a folder is a registered cluster that cannot be
// read: it is frozen. Clusters without a KubernetesCluster are as good as others.
//
// # Golden cases
//
// A folder testdata/discovery/CASE or testdata/translate/CASE is a golden case.
// `make golden` writes all of it but in/ and the names of the files in describe/:
//
//	in/                      an input, as above
//	out/CLUSTER/KIND.yaml    objects of the Output; CLUSTER may be management
//	statuses.yaml            statuses of the Output, by object
//	issues.yaml              issues of Load and of the Output
//	base.yaml                the case that this one is based on, see below
//	describe/KIND-NAME.txt   the answer to `meshctl describe KIND NAME`
//	describe/KIND.txt        the answer to `meshctl describe KIND`
//	describe/*.yaml          the same with -o yaml
//
// The files are compared with all that follows from the input: an object too
// many is a failure, as is one that is missing or different. Files do not repeat
// what is proven elsewhere:
//
//   - A case with a folder in/management leaves out the objects and statuses
//     that are the same without this folder, that is, what was discovered. The
//     cases of testdata/discovery have no such folder, and prove these.
//   - A case with a file base.yaml leaves out what the base, another case, has
//     in its files too. Write `base: ../CASE` into the file; make golden adds a
//     list of what the base has and this case has not. A base has no base.
//   - A status says "as written" for the spec of a policy that is the one in the
//     input.
package offline
