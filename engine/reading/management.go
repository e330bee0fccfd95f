package reading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Management is a management cluster to read.
type Management struct {
	Config *rest.Config
	// Namespace of the management plane.
	Namespace string
	// Version of this program.
	Version string
	// Detours are other ways to clusters whose stored address cannot be dialled from here: serve may run
	// elsewhere. Clusters uses them with the credentials that serve has. Nil for none.
	Detours *registration.Detours
	// Server is the URL of the metrics of the meshctl serve that leads; empty finds it, by port-forward.
	Server string
}

// Stored reads the management cluster alone: what was discovered, and what a
// server has written about it.
func (m Management) Stored(ctx context.Context) (*Reading, error) {
	input, err := watch.ReadOnce(ctx, m.Config, m.Namespace)
	if err != nil {
		return nil, err
	}
	input.Version = m.Version
	reading := FromWatch(input, true)
	return reading, m.addServeStatus(ctx, reading, nil)
}

// Clusters reads the management cluster and, with the credentials stored there,
// every registered cluster.
func (m Management) Clusters(ctx context.Context) (*Reading, error) {
	reading, err := m.readClusters(ctx, nil)
	if err != nil {
		return nil, err
	}
	return reading, m.addServeStatus(ctx, reading, nil)
}

// InForce reads as Clusters does, and also compares the objects in the clusters with those that serve
// would write.
func (m Management) InForce(ctx context.Context) (*Reading, error) {
	var observer *apply.Observer
	reading, err := m.readClusters(ctx, func(plane snapshot.Plane) *apply.Observer {
		observer = apply.NewObserver(plane)
		return observer
	})
	if err != nil {
		return nil, err
	}
	return reading, m.addServeStatus(ctx, reading, observer)
}

// readClusters reads all clusters once. NewObserver may be nil.
func (m Management) readClusters(ctx context.Context, newObserver func(snapshot.Plane) *apply.Observer) (*Reading, error) {
	input, err := serve.ReadOnce(ctx, serve.Options{
		Management: m.Config, Namespace: m.Namespace, Version: m.Version, UserAgent: m.Config.UserAgent, Log: slog.New(slog.DiscardHandler),
	}, m.Detours.Find, newObserver)
	if err != nil {
		return nil, err
	}
	reading := FromWatch(input, false)
	reading.Notes = m.Detours.Notes()
	return reading, nil
}

// Plane is the management plane. If its identity cannot be read, all objects of management planes in a
// namespace of this name count as its own. An invalid identity is an error.
func (m Management) Plane(ctx context.Context) (snapshot.Plane, error) {
	client, err := m.clientset()
	if err != nil {
		return snapshot.Plane{}, err
	}
	id, err := cluster.PlaneID(ctx, client, m.Namespace)
	var broken *cluster.BrokenPlaneError
	if errors.As(err, &broken) {
		return snapshot.Plane{}, err
	}
	return snapshot.Plane{Namespace: m.Namespace, ID: id}, nil
}

func (m Management) clientset() (kube.Clientset, error) {
	client, err := kube.NewClientset(m.Config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", m.Config.Host, err)
	}
	return client, nil
}

const (
	// ProbeTimeout bounds the search for other management planes.
	ProbeTimeout = 3 * time.Second
	// maxNamed bounds how many namespaces an error lists.
	maxNamed = 5
)

// HasCRDs reports whether a cluster answers within ProbeTimeout and has meshctl's CRDs.
func HasCRDs(ctx context.Context, config *rest.Config) bool {
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = ProbeTimeout, rest.NoWarnings{}
	missing, err := watch.MissingCRDs(ctx, config)
	return err == nil && len(missing) == 0
}

// CheckNamespace returns a NotFoundError if the namespace has no management plane: no cluster is
// registered in it, and it has no identity. The default namespace may be empty if there is no other plane.
func (m Management) CheckNamespace(ctx context.Context, in *snapshot.Input) error {
	if len(in.Management.KubernetesClusters) > 0 || len(in.Management.Meshes) > 0 {
		return nil
	}
	return m.CheckEmpty(ctx)
}

// CheckEmpty is CheckNamespace of a namespace in which nothing is registered.
func (m Management) CheckEmpty(ctx context.Context) error {
	client, err := m.clientset()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: metav1.ObjectNameField + "=" + cluster.PlaneName})
	if err != nil {
		return nil // a user who may not list ConfigMaps gets the empty answer
	}
	var others []string
	for i := range list.Items {
		if list.Items[i].Namespace == m.Namespace {
			return nil
		}
		others = append(others, list.Items[i].Namespace)
	}
	what := fmt.Sprintf("namespace %s of %s has no management plane", m.Namespace, m.Config.Host)
	if _, err := client.CoreV1().Namespaces().Get(ctx, m.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		what = fmt.Sprintf("namespace %s of %s does not exist", m.Namespace, m.Config.Host)
	}
	switch {
	case len(others) > 0:
		slices.Sort(others)
		return notFoundErrorf("%s; there is a management plane in: %s; name that namespace", what, strings.Join(others[:min(len(others), maxNamed)], ", "))
	case m.Namespace != snapshot.DefaultNamespace:
		return notFoundErrorf("%s, and no other namespace has a management plane; register a cluster with `meshctl cluster register --mgmt-namespace %s`, "+
			"or leave the namespace out", what, m.Namespace)
	}
	return nil
}
