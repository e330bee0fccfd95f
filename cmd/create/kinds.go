package create

import "github.com/meshctl/meshctl/wizards"

// KindCommand is a command for one kind.
type KindCommand struct {
	Form    *wizards.Form
	Use     string
	Aliases []string
	// Short is what creating one is for.
	Short string
	// Example is that of creating one, and EditExample that of changing one.
	Example, EditExample string
}

// Kinds are the kinds that have questions.
func Kinds() []KindCommand {
	return []KindCommand{
		{wizards.VirtualMesh(), "virtualmesh", []string{"vm", "vmesh"}, "Join meshes into a VirtualMesh", virtualMeshExample,
			`  # Reject calls that no AccessPolicy allows
  meshctl edit virtualmesh virtual-mesh --global-access ENABLED --apply`},
		{wizards.TrafficPolicy(), "trafficpolicy", []string{"tp"}, "Control how requests to services are handled", trafficPolicyExample,
			`  # Another timeout, and no retries
  meshctl edit trafficpolicy reviews-shift --timeout 5s --unset policy.retries --apply`},
		{wizards.AccessPolicy(), "accesspolicy", []string{"ap", "map"}, "Control who may call services", accessPolicyExample,
			`  # Allow any method
  meshctl edit accesspolicy productpage-calls --unset allowedMethods --apply`},
		{wizards.VirtualDestination(), "virtualdestination", []string{"vd", "vdest"}, "Give services of several clusters one host name, with failover", virtualDestinationExample,
			`  # Let callers use another port
  meshctl edit virtualdestination reviews --port 80 --apply`},
		{wizards.ServiceDependency(), "servicedependency", []string{"sdep"}, "Say which services workloads call, to keep their proxies small", serviceDependencyExample,
			`  # Another service that they call
  meshctl edit servicedependency shop --destination reviews --apply`},
		{wizards.AccessLogRecord(), "accesslogrecord", []string{"alr"}, "Log the requests of workloads", accessLogRecordExample,
			`  # Log only what fails
  meshctl edit accesslogrecord books --filter 'status>=500' --apply`},
		{wizards.Role(), "role", nil, "Say what somebody may write", roleExample,
			`  # Let the team also shift traffic
  meshctl edit role bookinfo-team --tp-actions RETRIES,REQUEST_TIMEOUT,TRAFFIC_SHIFT --apply`},
		{wizards.RoleBinding(), "rolebinding", nil, "Give a Role to users, groups and ServiceAccounts", roleBindingExample,
			`  # Give it to a group instead
  meshctl edit rolebinding bookinfo-team --subject group=bookinfo --apply`},
	}
}

const roleExample = `  # Answer questions
  meshctl create role

  # Timeouts and retries, and access, for the services of one namespace
  meshctl create role bookinfo-team --tp-actions RETRIES,REQUEST_TIMEOUT --tp-services 'bookinfo.*' --tp-callers 'bookinfo.*' \
    --ap-services 'bookinfo.*' --ap-callers '*.*' --apply`

const roleBindingExample = `  # Answer questions
  meshctl create rolebinding

  # Give a Role to a user and to a pipeline
  meshctl create rolebinding bookinfo-team --role bookinfo-team --subject user=ada --subject serviceaccount=ci/deployer --apply`

const virtualMeshExample = `  # Answer questions
  meshctl create virtualmesh

  # Join two meshes, and make every service reachable from both clusters
  meshctl create virtualmesh virtual-mesh --mesh gloo-mesh/istiod-istio-system-cluster-1 --mesh gloo-mesh/istiod-istio-system-cluster-2 --federate all --apply

  # The same for all meshes that are in no VirtualMesh
  meshctl create virtualmesh virtual-mesh --all-meshes --federate all --apply`

const trafficPolicyExample = `  # Answer questions
  meshctl create trafficpolicy

  # Send a tenth of the requests to version 2 of a service
  meshctl create trafficpolicy reviews-canary --destination reviews.bookinfo.cluster-1 \
    --shift reviews.bookinfo.cluster-1,weight=90,subset.version=v1 \
    --shift reviews.bookinfo.cluster-1,weight=10,subset.version=v2 --apply

  # Preview a timeout for the manifests in a folder
  meshctl create trafficpolicy slow --dir ./manifests --destination reviews.bookinfo.cluster-1 --timeout 3s --dry-run`

const accessPolicyExample = `  # Answer questions
  meshctl create accesspolicy

  # Allow one service account to read from a service
  meshctl create accesspolicy productpage --source-account bookinfo-productpage.bookinfo.cluster-1 \
    --destination reviews.bookinfo.cluster-1 --allowed-methods GET --apply

  # Deny a namespace a path, whatever other policies allow
  meshctl create accesspolicy no-admin --action deny --source-namespaces default \
    --destination reviews.bookinfo.cluster-1 --allowed-paths '/admin*' --apply`

const virtualDestinationExample = `  # Answer questions
  meshctl create virtualdestination

  # One name for two services, of which the second takes over from the first
  meshctl create virtualdestination reviews --hostname reviews.global --port 9080 --virtual-mesh gloo-mesh/virtual-mesh \
    --service reviews.bookinfo.cluster-1 --service reviews.bookinfo.cluster-2 --apply

  # Callers get the nearest
  meshctl create vd reviews --hostname reviews.global --port 9080 --virtual-mesh virtual-mesh --nearest-labels app=reviews --apply`

const serviceDependencyExample = `  # Answer questions
  meshctl create servicedependency

  # The workloads of a namespace call one service
  meshctl create servicedependency shop --source-namespaces default --destination reviews.bookinfo.cluster-1 --apply`

const accessLogRecordExample = `  # Answer questions
  meshctl create accesslogrecord

  # Log what fails in a namespace
  meshctl create accesslogrecord books --workload-namespaces bookinfo --filter 'status>=500' --apply`
