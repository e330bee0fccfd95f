package registration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TelemetryOptions configure SetTelemetry.
type TelemetryOptions struct {
	Name string
	// Want is how what the proxies of the cluster count is to come in; with an empty Door, as the cluster is reached.
	Want          multiclusterv1alpha1.Telemetry
	MgmtConfig    *rest.Config
	MgmtContext   string
	MgmtNamespace string
	// RemoteConfig reaches the cluster, with a right to give rights there; nil leaves them to somebody else.
	RemoteConfig  *rest.Config
	RemoteContext string
	// DryRun: the API servers check everything, and nothing is written.
	DryRun bool
}

// TelemetryReport is what SetTelemetry did, or would do.
type TelemetryReport struct {
	Report
	// Before and After are what the KubernetesCluster says; nil for nothing.
	Before, After *multiclusterv1alpha1.Telemetry
	// Agent is the ServiceAccount of the cluster's agent, if proxies are to send to it.
	Agent string
	// Rights are objects that an administrator of the cluster has to apply there; none if they are not needed, or were applied.
	Rights []map[string]any
}

// ReadProxiesName is the ClusterRole, and the ClusterRoleBinding, by which a registration by a management plane reads what proxies count.
func ReadProxiesName(cluster, planeID string) string {
	return cluster + "-gloomesh-read-proxies-" + planeID
}

// readProxiesRules are for port-forwarding: a newer client uses get for it.
func readProxiesRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"create", "get"}}}
}

// telemetry is one run of SetTelemetry.
type telemetry struct {
	*TelemetryOptions
	management *server
	known      *multiclusterv1alpha1.KubernetesCluster
	report     *TelemetryReport
}

// SetTelemetry says in the KubernetesCluster of a registered cluster how what its proxies count comes in, and gives serve the right that it
// needs for that there, or takes it.
func SetTelemetry(ctx context.Context, o TelemetryOptions) (*TelemetryReport, error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	if err := CheckName(o.Name); err != nil {
		return nil, err
	}
	s, err := newServer(managementSide, o.MgmtContext, o.MgmtConfig, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryOptions: &o, management: s, report: &TelemetryReport{Report: Report{Cluster: o.Name}}}
	if t.known, err = s.getKubernetesCluster(ctx, o.MgmtNamespace, o.Name); err != nil {
		return nil, err
	}
	if t.known == nil {
		return nil, &NotRegisteredError{Name: o.Name, Namespace: o.MgmtNamespace}
	}
	if err := t.decide(); err != nil {
		return nil, err
	}
	// What is wrong is found before anything is changed. The right is there before it is used, and goes after.
	if err := t.write(ctx, true); err != nil {
		return nil, err
	}
	scrapes := o.Want.Door == multiclusterv1alpha1.TelemetryDoorScrape
	steps := []func(context.Context) error{t.rights, func(ctx context.Context) error { return t.write(ctx, o.DryRun) }}
	if !scrapes {
		steps[0], steps[1] = steps[1], steps[0]
	}
	t.report.Changes = nil
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return t.report, nil
}

// decide completes what is wanted. A door that is closed is an error: else there would be no numbers, and no word why.
func (t *telemetry) decide() error {
	relayed := t.known.Spec.SecretName == ""
	want := &t.Want
	if want.Door == "" {
		want.Door = multiclusterv1alpha1.TelemetryDoorScrape
		if relayed {
			want.Door = multiclusterv1alpha1.TelemetryDoorAgent
		}
	}
	switch {
	case want.Door == multiclusterv1alpha1.TelemetryDoorScrape && relayed:
		return fmt.Errorf("cluster %s: meshctl serve does not reach its API server, so that it cannot scrape; choose --door agent or prometheus", t.Name)
	case want.Door == multiclusterv1alpha1.TelemetryDoorPush && !relayed:
		return fmt.Errorf("cluster %s: meshctl serve dials it, and its agent hands over nothing that proxies send; choose --door scrape or prometheus", t.Name)
	case want.Door == multiclusterv1alpha1.TelemetryDoorAgent && !relayed:
		return fmt.Errorf("cluster %s: meshctl serve dials it, and its agent sends no readings; choose --door scrape or prometheus", t.Name)
	}
	t.report.Before, t.report.After = t.known.Spec.Telemetry, want
	return nil
}

// write writes the KubernetesCluster, or only has the API server check it. What another tool owns there is a conflict, which that tells.
func (t *telemetry) write(ctx context.Context, dry bool) error {
	o := &object{resource: kubernetesClusters, namespace: t.MgmtNamespace, name: t.Name}
	change := o.change(t.management, Updated)
	if reflect.DeepEqual(t.report.Before, t.report.After) {
		change.Action = Unchanged
		t.report.add(change)
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.report.After)
	if err != nil {
		return fmt.Errorf("%s: encoding: %w", o.describe(), err)
	}
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": multiclusterv1alpha1.GroupVersion.String(), "kind": o.kind,
		"metadata": map[string]any{"namespace": t.MgmtNamespace, "name": t.Name, "uid": string(t.known.UID)},
		"spec":     map[string]any{"telemetry": content},
	}}
	options := metav1.ApplyOptions{FieldManager: snapshot.FieldManager + "-telemetry"}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := t.management.client(o.resource, o.namespace).Apply(ctx, o.name, want, options); err != nil {
		return fmt.Errorf("%s: writing spec.telemetry of %s: %w", t.management.label, o.describe(), err)
	}
	t.report.add(change)
	return nil
}

// rights gives or takes what scraping needs.
func (t *telemetry) rights(ctx context.Context) error {
	scrapes := t.Want.Door == multiclusterv1alpha1.TelemetryDoorScrape
	plane, err := t.management.plane(ctx, t.MgmtNamespace)
	if err != nil {
		return err
	}
	if t.Want.Door == multiclusterv1alpha1.TelemetryDoorPush {
		t.report.Agent = AgentName(plane.ID)
	}
	name := ReadProxiesName(t.Name, plane.ID)
	var objects []*object
	if scrapes {
		namespace, account, err := t.account(ctx)
		if err != nil {
			return err
		}
		labels := map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, snapshot.PlaneLabel: plane.ID, snapshot.ClusterLabel: t.Name}
		r := &registration{account: account}
		r.RemoteNamespace = namespace
		objects = wantedBy(r).clusterRoleObjects(name, name, labels, labels, readProxiesRules(), account)
	}
	if t.RemoteConfig == nil {
		return t.describe(objects)
	}
	remote, err := newServer(remoteSide, t.RemoteContext, t.RemoteConfig, DefaultTimeout)
	if err != nil {
		return err
	}
	if err := remote.probe(ctx); err != nil {
		return err
	}
	if uid := t.known.Annotations[cluster.UIDAnnotation]; uid != "" && uid != string(remote.uid) {
		return fmt.Errorf("%s: it is not cluster %s, which has another identity; choose its context with --remote-context", remote.label, t.Name)
	}
	if scrapes {
		return t.give(ctx, remote, objects)
	}
	return t.take(ctx, remote, name)
}

// describe adds objects to the report, for somebody else.
func (t *telemetry) describe(objects []*object) error {
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.want)
		if err != nil {
			return fmt.Errorf("%s: encoding: %w", o.describe(), err)
		}
		t.report.Rights = append(t.report.Rights, content)
	}
	return nil
}

func (t *telemetry) give(ctx context.Context, remote *server, objects []*object) error {
	for _, o := range objects {
		if t.DryRun {
			found, err := remote.owned(ctx, o)
			if err != nil {
				return err
			}
			action := Created
			if found != nil {
				action = Updated
			}
			t.report.add(o.change(remote, action))
			continue
		}
		change, err := remote.apply(ctx, o)
		if err != nil {
			return err
		}
		t.report.add(change)
	}
	return nil
}

func (t *telemetry) take(ctx context.Context, remote *server, name string) error {
	for _, o := range []*object{{resource: clusterRoleBindings, name: name, foreignHint: nameHint}, {resource: clusterRoles, name: name, foreignHint: nameHint}} {
		found, err := remote.owned(ctx, o)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		uid := found.GetUID()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
		if t.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if err := remote.client(o.resource, "").Delete(ctx, name, options); err != nil {
			return fmt.Errorf("%s: deleting %s: %w", remote.label, o.describe(), err)
		}
		t.report.add(o.change(remote, Deleted))
	}
	return nil
}

// account is the ServiceAccount with which serve reaches the cluster, as the stored token says.
func (t *telemetry) account(ctx context.Context) (namespace, name string, err error) {
	secret, err := t.management.clientset.CoreV1().Secrets(t.MgmtNamespace).Get(ctx, t.known.Spec.SecretName, metav1.GetOptions{})
	if err != nil {
		return "", "", fmt.Errorf("%s: Secret %s/%s, with which meshctl serve reaches cluster %s: %w", t.management.label, t.MgmtNamespace, t.known.Spec.SecretName, t.Name, err)
	}
	if namespace, name, ok := accountIn(secret); ok {
		return namespace, name, nil
	}
	return "", "", fmt.Errorf("cluster %s: its stored credential is not the token of a ServiceAccount; give its user the right to create pods/portforward yourself, and set spec.telemetry.door of the KubernetesCluster to scrape", t.Name)
}

// accountIn is the ServiceAccount whose token a Secret has. The token is not checked: who has made the Secret decides how the cluster is
// reached anyway.
func accountIn(secret *corev1.Secret) (namespace, name string, ok bool) {
	credential, err := cluster.ParseKubeconfig(secret.Data[cluster.SecretKey])
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(credential.Token, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return "", "", false
	}
	rest, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}
