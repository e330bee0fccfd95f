package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultCheckTimeout bounds the check of one cluster.
const DefaultCheckTimeout = 5 * time.Second

// parallelChecks is high because checks wait more than they work.
const parallelChecks = 64

// ClusterStatus is the status of a registered cluster.
type ClusterStatus struct {
	Name   string          `json:"name"`
	Health snapshot.Health `json:"health"`
	// Since is since when it is healthy, or is not, as the serve that runs has dated it; nil if that is not known, or if serve sees
	// something else than is seen from here.
	Since *time.Time `json:"since,omitempty"`
	// Server is the URL of its API server, and Version what runs there.
	Server  string `json:"server,omitempty"`
	Version string `json:"version,omitempty"`
	Domain  string `json:"domain,omitempty"`
	// Latency of an authenticated request, connecting included.
	Latency time.Duration `json:"latencyNanoseconds,omitempty"`
	Meshes  []MeshStatus  `json:"meshes,omitempty"`
	// Issued and Expires bound the credential's life; nil if it does not expire
	// or is not known.
	Issued  *time.Time `json:"credentialIssued,omitempty"`
	Expires *time.Time `json:"credentialExpires,omitempty"`
	// Reason says why it is not healthy, and the next step: all of Reasons, joined.
	Reason  string           `json:"reason,omitempty"`
	Reasons snapshot.Reasons `json:"reasons,omitempty"`
	// Serve is whether the serve that runs reaches it, and ServeMessage what it says; empty if
	// none runs. The rest is as seen from here.
	Serve        ServeStatus `json:"serve,omitempty"`
	ServeMessage string      `json:"serveMessage,omitempty"`
	// Connection is that of its agent, as serve stored it; nil if the cluster is dialled directly.
	Connection *multiclusterv1alpha1.Connection `json:"connection,omitempty"`
	// Detour: its Server could not be dialled from here, and was reached at this address of a
	// context.
	Detour string `json:"detour,omitempty"`
}

// MeshStatus is a mesh that was discovered in a cluster.
type MeshStatus struct {
	Name string `json:"name"`
	// Type is istio, osm, linkerd, consulconnect, appmesh or unknown.
	Type    string `json:"type,omitempty"`
	Version string `json:"version,omitempty"`
}

// ListOptions configure List.
type ListOptions struct {
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace defaults to cluster.DefaultNamespace.
	MgmtNamespace string
	// Timeout bounds the check of each cluster; DefaultCheckTimeout if zero.
	Timeout time.Duration
	// UserAgent is shown to the clusters.
	UserAgent string
	// Detours lead to clusters whose stored address cannot be dialled from here; nil for none.
	Detours *Detours
	// Clock is compared with the expiry of credentials; the real one if nil.
	Clock clock.PassiveClock
}

// List checks all registered clusters in parallel and returns them ascending by
// name. A cluster that does not answer is no error.
func List(ctx context.Context, o ListOptions) ([]ClusterStatus, error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	if o.Timeout <= 0 {
		o.Timeout = DefaultCheckTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	s, err := newServer(managementSide, o.MgmtContext, o.MgmtConfig, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	known, secrets, err := s.known(ctx, o.MgmtNamespace)
	if err != nil {
		return nil, err
	}
	meshes, err := s.meshes(ctx, o.MgmtNamespace)
	if err != nil {
		return nil, err
	}
	messages, err := s.serveMessages(ctx, o.MgmtNamespace)
	if err != nil {
		return nil, err
	}
	reports, err := s.serveReports(ctx, o.MgmtNamespace, secrets)
	if err != nil {
		return nil, err
	}
	agents, leaving, err := connections(ctx, s, o.MgmtNamespace)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(known))
	out := make([]ClusterStatus, len(names))
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for i, name := range names {
		group.Go(func() error {
			out[i] = o.checkOne(ctx, known[name], secrets[known[name].SecretName], agents[name])
			out[i].Meshes = meshes[name]
			out[i].addServeMessage(messages[name])
			out[i].addServeReport(reports[name])
			if departure, leaves := leaving[name]; leaves {
				out[i].addDeparture(departure)
			}
			return nil
		})
	}
	_ = group.Wait() // check returns its errors as problems
	left, err := s.leftoverStatuses(ctx, o.MgmtNamespace, known)
	if err != nil {
		return nil, err
	}
	all := make([]ClusterStatus, 0, len(out)+len(left)) // never nil: it is printed as a list
	all = append(append(append(all, out...), left...), unregistered(known, secrets)...)
	if all, err = addWaiting(ctx, s, o.MgmtNamespace, o.Clock.Now(), all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// because sets why a cluster has its health.
func (s *ClusterStatus) because(reasons ...snapshot.Reason) {
	s.Reasons = reasons
	s.Reason = s.Reasons.String()
}

// addServeMessage adds what serve reports in the status of the cluster.
func (s *ClusterStatus) addServeMessage(m serveMessage) {
	credential := m.reasons.Of(credentialCodes...)
	switch {
	case m.message == "" || s.Reason == m.message:
	case s.Health == snapshot.Healthy && s.Reason == "":
		s.Reason, s.Reasons = m.message, m.reasons
		if m.reasons.Of(snapshot.WithdrawalHeld) != nil || credential != nil {
			s.Health = snapshot.HealthDegraded
		}
	case credential != nil:
		s.Reason += "; serve says: " + m.message
		s.Reasons = append(s.Reasons, m.reasons...)
	}
}

// serveReport is what the serve that runs reports about its connection to a cluster.
type serveReport struct {
	serve   ServeStatus
	message string
	// ready is the condition of the cluster; nil if no serve has written it.
	ready *metav1.Condition
}

// serveReports returns the reports on all clusters; none if no serve runs.
func (s *server) serveReports(ctx context.Context, namespace string, secrets map[string]*corev1.Secret) (map[string]serveReport, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	held, err := s.isHeld(ctx, namespace, cluster.LeaseName)
	if unlessForbidden(err) != nil {
		return nil, fmt.Errorf("%s: reading Lease %s/%s: %w", s.label, namespace, cluster.LeaseName, err)
	}
	if !held && err == nil {
		return nil, nil
	}
	all, err := s.listKubernetesClusters(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]serveReport{}
	for _, kc := range all {
		fingerprint := cluster.Fingerprint(secrets[cmp.Or(kc.Spec.SecretName, kc.Name)])
		status, message := serveStatus(kc, fingerprint)
		if stored := kc.Status.Status; status == ServePending && len(stored) > 0 && stored[0].Credential == "" {
			status, message = serveStatus(kc, "") // an older serve does not report which credential it used
		}
		out[kc.Name] = serveReport{status, message, meta.FindStatusCondition(kc.Status.Conditions, commonv1.ConditionReady)}
	}
	return out, nil
}

// addSince adds since when the cluster has its health, if its condition says the same.
func (s *ClusterStatus) addSince(ready *metav1.Condition) {
	if ready != nil && (ready.Status == metav1.ConditionTrue) == (s.Health == snapshot.Healthy) {
		at := ready.LastTransitionTime.UTC()
		s.Since = &at
	}
}

// addServeReport adds the report of serve to what was seen from here: a cluster that cannot be reached from here is
// no outage if serve reaches it.
func (s *ClusterStatus) addServeReport(v serveReport) {
	s.Serve, s.ServeMessage = v.serve, v.message
	defer s.addSince(v.ready)
	switch {
	case s.Connection != nil: // all that is known is from serve
	case v.serve == ServeReaches && s.Health == snapshot.HealthUnreachable:
		what, _ := s.Reasons.Advice()
		s.because(snapshot.Reason{Code: snapshot.ReachedByServe, What: "meshctl serve reaches it; from here: " + what, Hint: "check the network between here and there"})
	case v.serve == ServeFails && s.Health == snapshot.Healthy:
		s.Health = snapshot.HealthDegraded
		s.because(snapshot.Reason{Code: snapshot.NotReachedByServe, What: "meshctl serve does not reach it: " + v.message})
	}
}

// known reads the registrations of a namespace.
func (s *server) known(ctx context.Context, namespace string) (map[string]cluster.Registration, map[string]*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	list, err := s.clientset.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + cluster.SecretType})
	if err != nil {
		if isDenied(err) {
			return nil, nil, fmt.Errorf("%s: listing kubeconfig Secrets: %w", s.label, err)
		}
		return nil, nil, s.unreachable(ctx, err)
	}
	secrets := map[string]*corev1.Secret{}
	for i := range list.Items {
		secrets[list.Items[i].Name] = &list.Items[i]
	}
	all, err := s.listKubernetesClusters(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	clusters := map[string]cluster.Registration{}
	for _, kc := range all {
		secretName := kc.Spec.SecretName
		orDefault(&secretName, kc.Name)
		clusters[kc.Name] = cluster.Registration{
			Name: kc.Name, Domain: kc.Spec.ClusterDomain, SecretName: secretName, Relayed: kc.Spec.SecretName == "",
			UID: types.UID(kc.Annotations[cluster.UIDAnnotation]), Created: kc.CreationTimestamp.Time,
		}
	}
	return clusters, secrets, nil
}

// unregistered are the credentials that are nobody's.
func unregistered(known map[string]cluster.Registration, secrets map[string]*corev1.Secret) []ClusterStatus {
	var out []ClusterStatus
	for _, name := range cluster.Unregistered(secrets, known) {
		status := ClusterStatus{Name: name, Health: snapshot.HealthUnregistered}
		status.because(snapshot.Reason{
			Code: snapshot.Unregistered, What: fmt.Sprintf("no KubernetesCluster names Secret %s/%s, so it is not used", secrets[name].Namespace, name),
			Hint: "register the cluster with `meshctl cluster register`, or delete the Secret",
		})
		out = append(out, status)
	}
	return out
}

// meshes lists the discovered meshes by cluster.
func (s *server) meshes(ctx context.Context, namespace string) (map[string][]MeshStatus, error) {
	r := kindResource(snapshot.Mesh)
	list, err := s.client(r, namespace).List(ctx, metav1.ListOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: listing Meshes: %w", s.label, err)
	}
	out := map[string][]MeshStatus{}
	for i := range list.Items {
		var mesh discoveryv1.Mesh
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &mesh); err != nil {
			return nil, fmt.Errorf("mesh %s: decoding: %w", list.Items[i].GetName(), err)
		}
		cluster := mesh.Labels[snapshot.DiscoveryClusterLabel]
		out[cluster] = append(out[cluster], meshStatus(&mesh))
	}
	return out, nil
}

func meshStatus(mesh *discoveryv1.Mesh) MeshStatus {
	kind, installation := snapshot.MeshType(&mesh.Spec)
	return MeshStatus{Name: mesh.Name, Type: kind, Version: installation.Version}
}

// Object is the object that the cluster is registered as.
func (s *ClusterStatus) Object() snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.KubernetesCluster, Name: s.Name}
}
