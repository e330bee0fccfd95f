package local

import (
	"fmt"
	"strconv"
)

const loopback = "127.0.0.1"

// Roles of the helper binaries that run as processes.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Istiod            = "istiod"
	OSMController     = "osm-controller"
)

// kubelet is where package proxies serves the API server, in clusters with real proxies. It is
// none of the cluster's own processes.
const kubelet = "kubelet"

// Names of the certificates of the kubelet and of its only client (Kubernetes: PKI
// certificates and requirements).
const (
	kubeletPair       = "kubelet"
	kubeletClientPair = "apiserver-kubelet-client"
	kubeletClient     = "kube-apiserver-kubelet-client"
)

// commandLines are those of the processes of a cluster, by their roles.
type commandLines struct{ *Cluster }

func linesFor(c *Cluster) commandLines { return commandLines{c} }

func (c commandLines) etcdArgs() []string {
	client := "https://" + c.address("etcd")
	peer := "https://" + c.address("etcd-peer")
	cert, key, ca := c.pki.file("etcd.crt"), c.pki.file("etcd.key"), c.pki.file("etcd-ca.crt")
	return []string{
		"--name=default", "--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
		// A demo need not survive a power failure, and several share one disk.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592", "--log-level=warn",
	}
}

func (c commandLines) apiServerArgs() []string {
	args := []string{
		"--bind-address=" + loopback, "--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.port("kube-apiserver")),
		"--etcd-servers=https://" + c.address("etcd"),
		"--etcd-cafile=" + c.pki.file("etcd-ca.crt"), "--etcd-certfile=" + c.pki.file("etcd.crt"), "--etcd-keyfile=" + c.pki.file("etcd.key"),
		"--tls-cert-file=" + c.pki.file("apiserver.crt"), "--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--client-ca-file=" + c.pki.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki.file("service-account.pub"),
		"--service-account-signing-key-file=" + c.pki.file("service-account.key"),
		"--service-cluster-ip-range=" + fmt.Sprintf("10.%d.0.0/16", 100+c.state.Index),
		"--authorization-mode=RBAC", "--allow-privileged=true",
		"--audit-policy-file=" + c.path(auditPolicyFile), "--audit-log-path=" + c.AuditLog(),
		// An Endpoints object must not have a loopback address.
		"--endpoint-reconciler-type=none",
		// There is no kubelet to remove the not-ready taint of nodes.
		"--disable-admission-plugins=TaintNodesByCondition",
	}
	if c.state.RealProxies {
		args = append(args,
			"--kubelet-certificate-authority="+c.pki.file("ca.crt"),
			"--kubelet-client-certificate="+c.pki.file(kubeletClientPair+".crt"), "--kubelet-client-key="+c.pki.file(kubeletClientPair+".key"),
			// The other addresses of nodes are for the networks of pods.
			"--kubelet-preferred-address-types=InternalDNS",
		)
	}
	return args
}

func (c commandLines) controllerManagerArgs() []string {
	kubeconfig := c.pki.file("kube-controller-manager.kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false",
		"--service-account-private-key-file=" + c.pki.file("service-account.key"), "--root-ca-file=" + c.pki.file("ca.crt"),
		"--kube-api-qps=500", "--kube-api-burst=500",
		// Node leases are not renewed often enough for the life-cycle controllers.
		"--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller,-cloud-node-lifecycle-controller",
	}
}

func (c commandLines) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.pki.file("kube-scheduler.kubeconfig"), "--secure-port=0", "--leader-elect=false",
		"--kube-api-qps=500", "--kube-api-burst=500",
	}
}

func (c commandLines) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.pki.file("kwok.kubeconfig"), "--config=" + c.path(stagesFile),
		"--manage-all-nodes=true", "--node-ip=" + loopback,
		"--cidr=" + fmt.Sprintf("10.%d.0.0/16", c.state.Index),
		// No port: there is no kubelet API to serve.
		"--node-port=0", "--server-address=",
		"--node-lease-duration-seconds=600",
	}
}

// kwokEnv stops kwok from reading the user's own kwok.yaml.
func (c commandLines) kwokEnv() []string { return []string{"KWOK_WORKDIR=" + c.path("kwok")} }

// istiodArgs and istiodEnv replace the pod template of the istiod Deployment.
func (c commandLines) istiodArgs() []string {
	return []string{
		"discovery", "--kubeconfig=" + c.pki.file("istiod.kubeconfig"), "--clusterID=" + c.state.Name,
		"--httpAddr=" + c.address("istiod-http"), "--httpsAddr=" + c.address("istiod-https"),
		"--grpcAddr=" + c.address("istiod-grpc"), "--secureGRPCAddr=" + c.address("istiod-grpcs"),
		"--monitoringAddr=" + c.address("istiod-monitoring"),
		"--ctrlz_address=" + loopback, "--ctrlz_port=" + strconv.Itoa(c.port("istiod-ctrlz")),
		"--kubernetesApiQPS=500", "--kubernetesApiBurst=500",
	}
}

func (c commandLines) istiodEnv() []string {
	env := []string{
		"POD_NAME=istiod", "POD_NAMESPACE=" + istioNamespace, "SERVICE_ACCOUNT=istiod", "REVISION=default",
		"CLUSTER_ID=" + c.state.Name,
		"PILOT_CERT_PROVIDER=istiod", "ISTIOD_CUSTOM_HOST=localhost," + loopback,
		"INJECTION_WEBHOOK_CONFIG_NAME=" + injectorWebhook, "VALIDATION_WEBHOOK_CONFIG_NAME=" + validatorWebhook,
		// There is one process; after a kill, a lease would only delay the next one.
		"ENABLE_LEADER_ELECTION=false",
		"ISTIO_MULTIROOT_MESH=true", "PILOT_SKIP_VALIDATE_TRUST_DOMAIN=true", // as in the pod template
	}
	if c.state.RealProxies {
		// Envoy as its project builds it does not have these extensions, and
		// refuses listeners that use them.
		env = append(env, "PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false")
	}
	return env
}
