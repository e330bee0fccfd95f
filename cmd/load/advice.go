package load

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

const (
	// adviceTimeout bounds the search for what somebody may have meant.
	adviceTimeout = 3 * time.Second
	// maxAdvised bounds what is named.
	maxAdvised = 5
)

// Advise adds to the error of a cluster that is no management cluster which contexts of the kubeconfig
// lead to one.
func Advise(ctx context.Context, f *cmdutil.Factory, kubeconfig string, err error) error {
	var missing *watch.MissingCRDsError
	if !errors.As(err, &missing) || !missing.NoPlane() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, adviceTimeout)
	defer cancel()
	var mu sync.Mutex
	var found []string
	var group errgroup.Group
	group.SetLimit(16)
	for _, c := range Contexts(f, kubeconfig) {
		group.Go(func() error {
			if isManagement(ctx, c.Config) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, c.Name)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	if len(found) == 0 {
		return cmdutil.NotFoundErrorf("%w; no context of the kubeconfig leads to one that answers", err)
	}
	slices.Sort(found)
	return cmdutil.NotFoundErrorf("%w; these contexts lead to one: %s", err, strings.Join(found[:min(len(found), maxAdvised)], ", "))
}

// isManagement reports whether a cluster answers and has the types of meshctl.
func isManagement(ctx context.Context, config *rest.Config) bool {
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = adviceTimeout, rest.NoWarnings{}
	missing, err := watch.MissingCRDs(ctx, config)
	return err == nil && len(missing) == 0
}

// checkNamespace is an error if a namespace has no management plane: nothing is registered in it, and it
// has no identity. The default one may be new.
func (m Management) checkNamespace(ctx context.Context, in *snapshot.Input) error {
	if len(in.Management.KubernetesClusters) > 0 || len(in.Management.Meshes) > 0 {
		return nil
	}
	client, err := m.clientset()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, adviceTimeout)
	defer cancel()
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + cluster.PlaneName})
	if err != nil {
		return nil // who may not ask gets what was read: nothing
	}
	var others []string
	for i := range list.Items {
		if list.Items[i].Namespace == m.Namespace {
			return nil
		}
		others = append(others, list.Items[i].Namespace)
	}
	switch {
	case len(others) > 0:
		slices.Sort(others)
		return cmdutil.NotFoundErrorf("namespace %s of %s has no management plane; there is one in: %s; choose it with -n",
			m.Namespace, m.Config.Host, strings.Join(others[:min(len(others), maxAdvised)], ", "))
	case m.Namespace != snapshot.DefaultNamespace:
		return cmdutil.NotFoundErrorf("namespace %s of %s has no management plane, and no other namespace has one: nothing is registered there; "+
			"register a cluster with `meshctl cluster register --namespace %s`, or leave out -n", m.Namespace, m.Config.Host, m.Namespace)
	}
	return nil
}

// read is what a function reads of the management cluster that the flags name, or what to do instead.
func (s *Source) read(ctx context.Context, read func(Management) (*Reading, error)) (*Reading, error) {
	management, err := s.Management()
	if err != nil {
		return nil, err
	}
	quietClient()
	reading, err := read(management)
	if err != nil {
		return nil, Advise(ctx, s.Factory, s.Kube.Kubeconfig, err)
	}
	if err := management.checkNamespace(ctx, reading.Input); err != nil {
		return nil, err
	}
	return reading, nil
}
