package local

import (
	"context"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
)

const (
	// osmProxyLabel is the label of a pod with the name of its proxy.
	osmProxyLabel = "osm-proxy-uuid"
	// osmRoot is the Secret with the mesh's root certificate and its key.
	osmRoot = "osm-ca-bundle"
)

// osmProxy gets the configuration of the proxy of a pod from osm-controller. The
// controller identifies a proxy by its certificate. The injector would have issued
// it; here it is issued in the same way, with the root of the mesh.
func (c osmInstall) osmProxy(ctx context.Context, client *kube.Client, pod *unstructured.Unstructured) ([]byte, error) {
	secret, err := client.Get(ctx, kube.Secrets(), osmNamespace, osmRoot)
	if err != nil {
		return nil, err
	}
	root, err := osmAuthority(secret)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: Secret %s: %w", c.Name(), osmRoot, err)
	}
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	id := pod.GetLabels()[osmProxyLabel]
	cert, key, err := root.issue(pkix.Name{CommonName: fmt.Sprintf("%s.sidecar.%s.%s.%s", id, account, pod.GetNamespace(), osmTrustDomain)})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	dir, err := os.MkdirTemp(c.dir, "proxy-")
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, data := range map[string][]byte{"ca": root.pem, "cert": cert, "key": key} {
		if err := files.Write(filepath.Join(dir, name), data); err != nil {
			return nil, err
		}
	}
	ip, _, _ := unstructured.NestedString(pod.Object, "status", "podIP")
	return c.helperOutput(ctx, nil, "xds", xdsTimeout, "--address="+c.address("osm-ads"),
		"--node="+fmt.Sprintf("%s/%s/%s/%s", id, ip, account, pod.GetNamespace()),
		"--ca="+filepath.Join(dir, "ca"), "--cert="+filepath.Join(dir, "cert"), "--key="+filepath.Join(dir, "key"),
		"--server-name=ads."+osmTrustDomain)
}

// osmAuthority reads the root of the mesh from its Secret.
func osmAuthority(secret *unstructured.Unstructured) (*authority, error) {
	var read [2][]byte
	for i, name := range []string{"ca.crt", "private.key"} {
		text, _, err := unstructured.NestedString(secret.Object, "data", name)
		if err != nil || text == "" {
			return nil, errors.Join(fmt.Errorf("it has no %s", name), err)
		}
		if read[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return readAuthority(read[0], read[1])
}
