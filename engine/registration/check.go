package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// checkOne checks a cluster, or tells what serve stored of one that only its agent reaches.
func (o *ListOptions) checkOne(ctx context.Context, known cluster.Registration, secret *corev1.Secret, c *multiclusterv1alpha1.Connection) ClusterStatus {
	if known.Relayed && secret == nil {
		return relayed(known, c)
	}
	return o.check(ctx, known, secret)
}

// check checks one cluster and returns its status.
func (o *ListOptions) check(ctx context.Context, known cluster.Registration, secret *corev1.Secret) ClusterStatus {
	status := ClusterStatus{Name: known.Name, Domain: known.Domain, Health: snapshot.HealthInvalid}
	if secret == nil {
		status.because(snapshot.ReasonOf(snapshot.CredentialInvalid, cluster.ErrNoSecret))
		return status
	}
	credential, life, err := cluster.ParseSecret(secret)
	if err != nil {
		status.because(snapshot.ReasonOf(snapshot.CredentialInvalid, err))
		return status
	}
	status.Server = credential.Server
	if !life.IsZero() {
		status.Issued, status.Expires = &life.Issued, &life.Expires
	}
	client, err := cluster.NewClient(credential, o.UserAgent)
	if err != nil {
		status.because(snapshot.ReasonOf(snapshot.CredentialInvalid, err))
		return status
	}
	if reached := o.checkAt(ctx, client, &status, known.UID); status.Health == snapshot.HealthUnreachable && !reached {
		o.checkDetours(ctx, credential, &status, known.UID)
	}
	if status.Health == snapshot.Healthy || status.Health == snapshot.HealthDenied {
		o.checkLife(&status, life)
	}
	return status
}

// checkDetours checks the cluster at other addresses, with the stored credential. The status stays if
// none leads there.
func (o *ListOptions) checkDetours(ctx context.Context, credential *cluster.Credential, status *ClusterStatus, uid types.UID) {
	asking, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	for _, address := range o.Detours.Find(asking, credential.Server, uid) {
		client, err := cluster.NewClientAt(credential, o.UserAgent, address)
		if err != nil {
			return
		}
		there := *status
		o.checkAt(ctx, client, &there, uid)
		if there.Health != snapshot.HealthUnreachable {
			there.Detour = address
			*status = there
			return
		}
	}
}

// checkAt checks the cluster to which a client leads, and reports whether any server was reached.
func (o *ListOptions) checkAt(ctx context.Context, client *cluster.Client, status *ClusterStatus, uid types.UID) bool {
	defer client.Close()
	s, err := newServer(remoteSide, "", client.Config, o.Timeout)
	if err != nil {
		status.because(snapshot.ReasonOf(snapshot.CredentialInvalid, err))
		return true
	}
	status.because()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ctx, reached := kube.WithReached(ctx)
	s.check(ctx, status)
	if status.Health == snapshot.Healthy {
		s.checkIdentity(ctx, status, uid)
	}
	return reached()
}

// check makes requests to the cluster and sets its health. The first that fails
// decides: later ones would fail for the same reason.
func (s *server) check(ctx context.Context, status *ClusterStatus) {
	start := time.Now()
	_, err := cluster.WhoAmI(ctx, s.clientset)
	status.Latency = time.Since(start)
	switch {
	case isDenied(err):
		o := snapshot.NewOutage(status.Name, kube.Cause(err), "the cluster refuses the credential")
		if o.Cause == snapshot.PermissionsMissing {
			o.What = "the cluster refuses the request: " + kube.Text(err)
		}
		status.Health = o.Health
		status.because(snapshot.Reason{Code: o.Cause, What: o.What, Hint: o.Next})
		return
	case err != nil:
		what := snapshot.ReasonOf(snapshot.ClusterFrozen, s.unreachable(ctx, err)).What
		o := snapshot.NewOutage(status.Name, kube.Cause(err), what)
		status.Health, status.Latency = o.Health, 0
		status.because(snapshot.Reason{Code: snapshot.ClusterFrozen, Cause: o.Cause, What: o.What, Hint: o.Next})
		return
	}
	status.Health = snapshot.Healthy
	raw, err := s.clientset.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		status.Version, err = parseVersion(raw)
	}
	if err != nil {
		status.Health = snapshot.HealthDegraded
		status.because(snapshot.Reason{Code: snapshot.NotChecked, What: "its version: " + kube.Text(err)})
		return
	}
	missing, err := missingAccess(ctx, s.clientset, ruleAccesses(remoteRules(false)))
	switch {
	case err != nil:
		status.Health = snapshot.HealthDegraded
		status.because(snapshot.Reason{Code: snapshot.NotChecked, What: kube.Text(err)})
	case len(missing) > 0:
		status.Health = snapshot.HealthDegraded
		status.because(snapshot.Reason{Code: snapshot.PermissionsMissing, What: "the credential may not " + shorten(missing), Hint: "run `meshctl cluster register` again"})
	}
}

// checkIdentity compares the cluster with the registered one. Who may not ask is told so by
// check.
func (s *server) checkIdentity(ctx context.Context, status *ClusterStatus, registered types.UID) {
	system, err := s.clientset.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err != nil:
		reason := snapshot.ReasonOf(snapshot.NotChecked, s.unreachable(ctx, err))
		reason.What = "which cluster it is: " + reason.What
		status.Health = snapshot.HealthDegraded
		status.because(reason)
	case registered != "" && system.UID != registered:
		status.Health = snapshot.HealthInvalid
		status.because(snapshot.ReasonOf(snapshot.DifferentCluster, &cluster.OtherClusterError{Name: status.Name, Server: status.Server, Registered: registered, Actual: system.UID}))
	}
}

// checkLife checks the age of the credential.
func (o *ListOptions) checkLife(status *ClusterStatus, life cluster.Lifetime) {
	now := o.Clock.Now()
	switch {
	case life.IsZero():
	case !now.Before(life.Expires):
		status.Health = snapshot.HealthDenied
		status.because(snapshot.ReasonOf(snapshot.CredentialRefused, &cluster.ExpiredError{At: life.Expires}))
	case life.Overdue(now) && status.Health == snapshot.Healthy:
		status.Health = snapshot.HealthDegraded
		status.because(snapshot.Reason{
			Code: snapshot.CredentialOverdue, What: fmt.Sprintf("the token expires in %s and should have been renewed", life.Expires.Sub(now).Round(time.Second)),
			Hint: "is `meshctl serve` running?",
		})
	}
}

// shorten names the first few of many.
func shorten(missing []string) string {
	const few = 3
	if len(missing) <= few {
		return strings.Join(missing, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(missing[:few], ", "), len(missing)-few)
}

// leftoverStatuses lists the clusters that were deregistered, but not cleaned.
func (s *server) leftoverStatuses(ctx context.Context, namespace string, known map[string]cluster.Registration) ([]ClusterStatus, error) {
	list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: LeftoverLabel})
	if err != nil {
		return nil, fmt.Errorf("%s: listing records of leftovers: %w", s.label, err)
	}
	var out []ClusterStatus
	for i := range list.Items {
		name := list.Items[i].Labels[LeftoverLabel]
		if _, again := known[name]; again {
			continue
		}
		status := ClusterStatus{Name: name, Health: snapshot.HealthLeftover}
		status.because(snapshot.Reason{
			Code: snapshot.NotCleaned, What: "deregistered, but not cleaned",
			Hint: fmt.Sprintf("run `meshctl cluster deregister %s --remote-context ...`, or the commands in ConfigMap %s/%s", name, namespace, list.Items[i].Name),
		})
		if len(list.Items[i].OwnerReferences) > 0 {
			status.Reasons[0].What += ": its agent was away, and removes what is there when it comes back"
			status.because(status.Reasons...)
		}
		out = append(out, status)
	}
	return out, nil
}

// isDenied reports that a server answered and refused the credential.
func isDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }
