package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxKubeconfig is far above what one cluster, user and context need, and far
// below what would be a burden to parse.
const maxKubeconfig = 64 << 10

// kubeconfig is the allow-list: a stored kubeconfig has these fields and no
// others. New fields of client-go are rejected until they are added here.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion,omitempty"`
	Kind           string         `json:"kind,omitempty"`
	Preferences    struct{}       `json:"preferences,omitzero"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context,omitempty"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server     string `json:"server"`
		ServerName string `json:"tls-server-name,omitempty"`
		CA         []byte `json:"certificate-authority-data,omitempty"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Token string `json:"token"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster   string `json:"cluster"`
		User      string `json:"user"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"context"`
}

// refusals say why a well-known field is not on the allow-list.
var refusals = map[string]string{
	"exec":                     "it runs a program (exec)",
	"auth-provider":            "it uses an auth provider",
	"certificate-authority":    "it names a file (certificate-authority); put the certificates into certificate-authority-data",
	"client-certificate":       "it names a file (client-certificate)",
	"client-key":               "it names a file (client-key)",
	"tokenFile":                "it names a file (tokenFile); put a token into token",
	"client-certificate-data":  "it holds a client certificate; only tokens are accepted, because they expire",
	"client-key-data":          "it holds a private key; only tokens are accepted, because they expire",
	"insecure-skip-tls-verify": "it switches off the verification of the server's certificate (insecure-skip-tls-verify)",
	"proxy-url":                "it goes through a proxy (proxy-url)",
	"username":                 "it holds a user name; only tokens are accepted",
	"password":                 "it holds a password; only tokens are accepted",
	"as":                       "it impersonates another user (as)",
}

var (
	unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]*)"`)
	plainField   = regexp.MustCompile(`^[A-Za-z][A-Za-z-]{0,31}$`)
	visible      = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

// ParseKubeconfig reads a kubeconfig through the allow-list. The error is a
// *KubeconfigError; it repeats no value, because any may be a secret.
func ParseKubeconfig(data []byte) (*Credential, error) {
	if reason := checkSize(data); reason != "" {
		return nil, &KubeconfigError{Reason: reason}
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, &KubeconfigError{Reason: "it is not valid YAML"}
	}
	var parsed kubeconfig
	strict, err := kjson.UnmarshalStrict(asJSON, &parsed)
	if len(strict) > 0 {
		return nil, &KubeconfigError{Reason: refusal(errors.Join(strict...))}
	}
	if err != nil {
		return nil, &KubeconfigError{Reason: "it is YAML, but not a kubeconfig"}
	}
	credential, reason := parsed.credential()
	if reason != "" {
		return nil, &KubeconfigError{Reason: reason}
	}
	return credential, nil
}

func checkSize(data []byte) string {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "it is empty"
	case len(data) > maxKubeconfig:
		return fmt.Sprintf("it has %d bytes, more than %d", len(data), maxKubeconfig)
	}
	return ""
}

// refusal names the first field that is not on the allow-list, if it looks like
// a field at all: a token in the wrong place must not be repeated.
func refusal(err error) string {
	for _, match := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		field := match[1][strings.LastIndexByte(match[1], '.')+1:]
		if reason := refusals[field]; reason != "" {
			return reason
		}
		if plainField.MatchString(field) {
			return "its field " + field + " is not accepted"
		}
	}
	return "it has a field that is not accepted"
}

// credential checks what the allow-list let through and rebuilds it.
func (k *kubeconfig) credential() (*Credential, string) {
	if len(k.Clusters) != 1 || len(k.Users) != 1 || len(k.Contexts) != 1 {
		return nil, fmt.Sprintf("it has %s, %s and %s instead of one of each",
			snapshot.Count(len(k.Clusters), "cluster"), snapshot.Count(len(k.Users), "user"), snapshot.Count(len(k.Contexts), "context"))
	}
	context, cluster, user := k.Contexts[0], k.Clusters[0], k.Users[0]
	if context.Context.Cluster != cluster.Name || context.Context.User != user.Name ||
		(k.CurrentContext != "" && k.CurrentContext != context.Name) {
		return nil, "its context does not lead to its cluster and user"
	}
	server, reason := CheckServer(cluster.Cluster.Server)
	if reason != "" {
		return nil, "its " + reason
	}
	if name := cluster.Cluster.ServerName; name != "" && !validHost(name) {
		return nil, "its tls-server-name is not a host name"
	}
	if ca := cluster.Cluster.CA; len(ca) > 0 && !isCertificates(ca) {
		return nil, "its certificate-authority-data holds no PEM certificates"
	}
	if !visible.MatchString(user.User.Token) {
		return nil, "it has no usable token"
	}
	return &Credential{
		Server: server, ServerName: cluster.Cluster.ServerName,
		CA: cluster.Cluster.CA, Token: user.User.Token,
	}, ""
}

// CheckServer accepts https URLs of a host and perhaps a path, and returns
// them without a trailing slash.
func CheckServer(server string) (normal, reason string) {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Host == "":
		return "", "server is not a URL"
	case u.Scheme != "https":
		return "", "server is not an https URL"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", "server has a user, a query or a fragment"
	case !validHost(u.Hostname()) || !validPort(u.Port()):
		return "", "server has no valid host and port"
	case forbiddenHost(u.Hostname()):
		return "", "server is a link-local address"
	}
	return strings.TrimRight(u.String(), "/"), ""
}

func validHost(host string) bool {
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := net.LookupPort("tcp", port)
	return err == nil && n > 0
}

// forbiddenHost reports addresses at which no API server is, but at which
// clouds keep their metadata and credentials.
func forbiddenHost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && forbiddenAddr(addr.Unmap())
}

func forbiddenAddr(addr netip.Addr) bool {
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified()
}

func isCertificates(data []byte) bool {
	found := false
	for len(bytes.TrimSpace(data)) > 0 {
		block, rest := pem.Decode(data)
		if block == nil || block.Type != "CERTIFICATE" {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
		found, data = true, rest
	}
	return found
}

// EncodeKubeconfig writes a kubeconfig of one cluster, user and context, all
// called name, that ParseKubeconfig and kubectl read.
func EncodeKubeconfig(name string, c *Credential) ([]byte, error) {
	out := kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []namedCluster{{Name: name}},
		Users:    []namedUser{{Name: name}},
		Contexts: []namedContext{{Name: name}},
	}
	out.Clusters[0].Cluster.Server = c.Server
	out.Clusters[0].Cluster.ServerName = c.ServerName
	out.Clusters[0].Cluster.CA = c.CA
	out.Users[0].User.Token = c.Token
	out.Contexts[0].Context.Cluster = name
	out.Contexts[0].Context.User = name
	data, err := yaml.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of cluster %s: encoding: %w", name, err)
	}
	return data, nil
}
