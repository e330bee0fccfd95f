package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
)

const (
	// agentAccount is the beginning of the name of the account of the mesh's agent; which one it is,
	// and in which namespace, follows when a cluster is registered.
	agentAccount = "meshctl-agent-"
	// tokenLife is that of tokens, and tokenRenewal what is left when they are renewed, as by a
	// kubelet.
	tokenLife    = time.Hour
	tokenRenewal = tokenLife / 5
)

// AgentFiles are what the pod of the mesh's agent would have from its kubelet.
type AgentFiles struct {
	// Kubeconfig has the credential of its account, and the account's namespace; Token is for istiod.
	Kubeconfig, Token string
}

// AgentFiles are those of this cluster; Kubelet keeps them once the account is there.
func (c *Cluster) AgentFiles() AgentFiles {
	return AgentFiles{Kubeconfig: c.path("agent", "kubeconfig"), Token: c.path("agent", "istio-token")}
}

// tokens are the files of the agent.
type tokens struct {
	cluster *Cluster
	client  corev1.CoreV1Interface
	// account is whose tokens they are, and renew is when they are due.
	account string
	renew   time.Time
}

func newTokens(c *Cluster) (*tokens, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return &tokens{cluster: c, client: client}, nil
}

// keep writes tokens that are due.
func (t *tokens) keep(ctx context.Context) error {
	list, err := t.client.ServiceAccounts(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		account := &list.Items[i]
		if !strings.HasPrefix(account.Name, agentAccount) {
			continue
		}
		if id := account.Name + " " + string(account.UID); id != t.account || time.Now().After(t.renew) {
			if err := t.write(ctx, account.Namespace, account.Name); err != nil {
				return err
			}
			t.account, t.renew = id, time.Now().Add(tokenLife-tokenRenewal)
		}
		return nil
	}
	return nil
}

func (t *tokens) write(ctx context.Context, namespace, account string) error {
	at := t.cluster.AgentFiles()
	apiToken := filepath.Join(filepath.Dir(at.Token), "token")
	for path, audiences := range map[string][]string{apiToken: nil, at.Token: {"istio-ca"}} {
		seconds := int64(tokenLife / time.Second)
		request, err := t.client.ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
		}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), files.Write(path, []byte(request.Status.Token))); err != nil {
			return err
		}
	}
	admin, err := t.cluster.Config()
	if err != nil {
		return err
	}
	config, name := api.NewConfig(), t.cluster.Name()
	config.Clusters[name] = &api.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos[name] = &api.AuthInfo{TokenFile: apiToken}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	return kube.WriteKubeconfig(at.Kubeconfig, config)
}
