package local

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
)

const (
	// caSecret is mounted by istiod's pod template, if it exists.
	caSecret = "cacerts"
	// mountAgain is when what failed is tried again, and mountLook is when is looked without a change: tokens have to be renewed.
	mountAgain = 300 * time.Millisecond
	mountLook  = 10 * time.Second
)

// Kubelet does for the process istiod what a kubelet does for the pod: it keeps the Secret
// cacerts in its folder, and starts it again when its pod is another. It also keeps the
// tokens of the mesh's agent. It runs until ctx ends, and waits for an API server that does
// not answer.
func (c *Cluster) Kubelet(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	tokens, err := newTokens(c)
	if err != nil {
		return err
	}
	mount := &mount{dir: c.path(workDir(Istiod), "etc", caSecret)}
	pod := ""
	pods := client.Changed(ctx, istioNamespace, kube.Secrets(), kube.Pods())
	accounts := client.Changed(ctx, metav1.NamespaceAll, kube.ServiceAccounts())
	for {
		pause := mountLook
		err := nodesOf(c).keepIstiod(ctx, client, mount, &pod)
		if err == nil {
			err = tokens.keep(ctx)
		}
		if err != nil && ctx.Err() == nil && !isTransient(err) {
			return fmt.Errorf("cluster %s: %w", c.Name(), err)
		}
		if err != nil {
			pause = mountAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pods:
		case <-accounts:
		case <-time.After(pause):
		}
	}
}

// isTransient reports that an API server did not answer, or that istiod did not start, as
// without an API server.
func isTransient(err error) bool {
	var status apierrors.APIStatus
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) {
		return false
	}
	return !errors.As(err, &status) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err)
}

// keepIstiod does what is to do now. pod is the UID of the last pod.
func (c nodeSet) keepIstiod(ctx context.Context, client *kube.Client, mount *mount, pod *string) error {
	secret, err := client.Get(ctx, kube.Secrets(), istioNamespace, caSecret)
	switch {
	case apierrors.IsNotFound(err):
		err = mount.remove()
	case err == nil:
		err = mount.write(secret)
	}
	if err != nil {
		return err
	}
	pods, err := client.List(ctx, kube.Pods(), istioNamespace)
	if err != nil {
		return err
	}
	newest := ""
	var created time.Time
	for _, p := range pods {
		if p.GetLabels()["app"] == Istiod && p.GetDeletionTimestamp() == nil && !p.GetCreationTimestamp().Time.Before(created) {
			newest, created = string(p.GetUID()), p.GetCreationTimestamp().Time
		}
	}
	if newest == "" || newest == *pod {
		return nil
	}
	if *pod != "" { // else it is the pod that istiod was started with
		if err := c.Restart(ctx, Istiod); err != nil {
			return err
		}
	}
	*pod = newest
	return nil
}

// mount is a folder with the data of a Secret. All of it changes at once, as in a kubelet:
// the files are links into a folder that is exchanged.
type mount struct {
	dir     string
	version string
	n       int
}

func (m *mount) write(secret *unstructured.Unstructured) error {
	if m.version == secret.GetResourceVersion() {
		return nil
	}
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		return err
	}
	m.n++
	fresh := "..data-" + strconv.Itoa(m.n)
	if err := os.MkdirAll(filepath.Join(m.dir, fresh), 0o700); err != nil {
		return err
	}
	for name, value := range data {
		content, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(m.dir, fresh, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := relink(fresh, filepath.Join(m.dir, "..data")); err != nil {
		return err
	}
	for name := range data {
		if err := relink(filepath.Join("..data", name), filepath.Join(m.dir, name)); err != nil {
			return err
		}
	}
	m.version = secret.GetResourceVersion()
	return os.RemoveAll(filepath.Join(m.dir, "..data-"+strconv.Itoa(m.n-1)))
}

// relink makes a link, in place of the one that is there.
func relink(to, at string) error {
	if old, err := os.Readlink(at); err == nil && old == to {
		return nil
	}
	_ = os.Remove(at + ".new") // of a process that was killed
	if err := os.Symlink(to, at+".new"); err != nil {
		return err
	}
	return os.Rename(at+".new", at)
}

func (m *mount) remove() error {
	if m.version == "" {
		return nil
	}
	m.version = ""
	return os.RemoveAll(m.dir)
}
