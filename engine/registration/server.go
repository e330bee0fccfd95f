package registration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// DefaultTimeout is how long an API server may take for its first answer.
const DefaultTimeout = 10 * time.Second

// oldest is the first Kubernetes version with everything that is used here:
// ValidatingAdmissionPolicies are the youngest.
var oldest = version.MustParseGeneric("1.30.0")

// server is one API server as a caller's credential sees it.
type server struct {
	// side is "management" or "remote"; label names the server for people.
	side    string
	label   string
	config  *rest.Config
	timeout time.Duration

	clientset kube.Clientset
	dynamic   dynamic.Interface
	meta      metadata.Interface

	// uid and version are known after probe.
	uid     types.UID
	version string
}

// The two sides of a registration.
const (
	managementSide = "management"
	remoteSide     = "remote"
)

// newServer builds clients and does no I/O; kubeContext may be empty.
func newServer(side, kubeContext string, config *rest.Config, timeout time.Duration) (*server, error) {
	if config == nil {
		return nil, fmt.Errorf("%s cluster: no configuration to reach it", side)
	}
	s := &server{side: side, label: label(side, kubeContext, config.Host), config: kube.Unlimited(config), timeout: timeout}
	if s.timeout <= 0 {
		s.timeout = DefaultTimeout
	}
	if s.config.WarningHandler == nil {
		s.config.WarningHandler = rest.NoWarnings{}
	}
	httpClient, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return nil, fmt.Errorf("%s: its configuration: %w", s.label, err)
	}
	if s.clientset, err = kube.NewClientsetFor(s.config, httpClient); err != nil {
		return nil, fmt.Errorf("%s: its configuration: %w", s.label, err)
	}
	if s.dynamic, err = dynamic.NewForConfigAndClient(s.config, httpClient); err != nil {
		return nil, fmt.Errorf("%s: its configuration: %w", s.label, err)
	}
	if s.meta, err = metadata.NewForConfigAndClient(s.config, httpClient); err != nil {
		return nil, fmt.Errorf("%s: its configuration: %w", s.label, err)
	}
	return s, nil
}

func label(side, kubeContext, host string) string {
	if kubeContext == "" {
		return fmt.Sprintf("%s cluster (%s)", side, host)
	}
	return fmt.Sprintf("%s cluster (context %q, %s)", side, kubeContext, host)
}

// probe asks who the server is. It writes nothing.
func (s *server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	raw, err := s.clientset.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return s.unreachable(ctx, err)
	}
	if s.version, err = parseVersion(raw); err != nil {
		return s.unreachable(ctx, err)
	}
	if v, err := version.ParseGeneric(s.version); err == nil && v.LessThan(oldest) {
		return fmt.Errorf("%s runs Kubernetes %s; meshctl needs %d.%d or later", s.label, s.version, oldest.Major(), oldest.Minor())
	}
	system, err := s.clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return &PermissionError{Server: s.label, Missing: []string{"get namespaces/" + metav1.NamespaceSystem}}
	case err != nil:
		return s.unreachable(ctx, err)
	}
	s.uid = system.UID
	return nil
}

// unreachable says that the server cannot be used because a request failed.
func (s *server) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = ctx.Err()
	}
	return &UnreachableError{Server: s.label, Management: s.side == managementSide, Err: err}
}

// namespaceExists reports whether a namespace exists and is not being deleted.
func (s *server) namespaceExists(ctx context.Context, name string) (bool, error) {
	ns, err := s.clientset.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: reading namespace %s: %w", s.label, name, err)
	case ns.DeletionTimestamp != nil:
		return false, fmt.Errorf("%s: namespace %s is being deleted; try again when it is gone", s.label, name)
	}
	return true, nil
}

// storedSecret reads a Secret; nil if there is none.
func storedSecret(ctx context.Context, clientset kube.Clientset, namespace, name string) (*corev1.Secret, error) {
	secret, err := clientset.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: reading: %w", namespace, name, err)
	}
	return secret, nil
}

// hostOf is the host name to expect in the server's certificate.
func hostOf(serverName, server string) string {
	u, err := url.Parse(server)
	if serverName != "" || err != nil {
		return serverName
	}
	return u.Hostname()
}

func parseVersion(raw []byte) (string, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", errors.New("it does not answer as a Kubernetes API server does")
	}
	return info.GitVersion, nil
}
