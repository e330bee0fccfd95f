package local

import (
	"crypto/x509/pkix"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// client is somebody who talks to the API server, with a kubeconfig file of its own.
type client struct {
	file    string
	subject pkix.Name
}

// clients have users of their own, so that the audit log tells them apart from
// each other and from meshctl.
func clients() []client {
	masters := []string{"system:masters"}
	return []client{
		{"admin.kubeconfig", pkix.Name{CommonName: "admin", Organization: masters}},
		{"kube-controller-manager.kubeconfig", pkix.Name{CommonName: "kube-controller-manager", Organization: masters}},
		{"kube-scheduler.kubeconfig", pkix.Name{CommonName: "system:kube-scheduler"}},
		{"kwok.kubeconfig", pkix.Name{CommonName: "kwok", Organization: masters}},
		// A service account is its user name to RBAC: istiod has exactly the rights that its chart gives it.
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
// client-go's own limiter of five requests a second.
func restConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}
