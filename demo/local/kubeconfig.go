package local

import (
	"crypto/x509/pkix"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// client is a client of the API server with its own kubeconfig file.
type client struct {
	file    string
	subject pkix.Name
}

// clients have different users, so that the audit log distinguishes them from
// each other and from meshctl.
func clients() []client {
	masters := []string{"system:masters"}
	return []client{
		{"admin.kubeconfig", pkix.Name{CommonName: "admin", Organization: masters}},
		{"kube-controller-manager.kubeconfig", pkix.Name{CommonName: "kube-controller-manager", Organization: masters}},
		{"kube-scheduler.kubeconfig", pkix.Name{CommonName: "system:kube-scheduler"}},
		{"kwok.kubeconfig", pkix.Name{CommonName: "kwok", Organization: masters}},
		// A service account is its user name to RBAC: istiod has exactly the permissions that its chart grants.
		{"istiod.kubeconfig", pkix.Name{CommonName: "system:serviceaccount:istio-system:istiod"}},
		{"osm-controller.kubeconfig", pkix.Name{CommonName: "system:serviceaccount:osm-system:osm"}},
	}
}

func kubeconfig(cluster, user, server string, ca, cert, key []byte) *api.Config {
	config := api.NewConfig()
	config.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[cluster+"-"+user] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[cluster] = &api.Context{Cluster: cluster, AuthInfo: cluster + "-" + user}
	config.CurrentContext = cluster
	return config
}

// restConfig reads a kubeconfig file for use by this process: without
// client-go's limit of five requests per second.
func restConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}
