package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultRelayWait is how long commands wait for an agent: its image may have to be pulled.
const DefaultRelayWait = 3 * time.Minute

// findRelay finds where the agent dials serve, and which image it has: that of serve, if none is named.
func (r *via) findRelay(ctx context.Context, within bool) error {
	var err error
	if r.Relay.Server == "" {
		if r.Relay.Server, err = relayAddress(ctx, r.management, r.MgmtNamespace, within); err != nil {
			return fmt.Errorf("cluster %s: %w", r.Name, err)
		}
	}
	if r.Agent.Image != "" {
		return nil
	}
	installed, err := r.management.installedServer(ctx, r.MgmtNamespace)
	if unlessForbidden(err) != nil || installed == nil {
		return unlessForbidden(err)
	}
	r.Agent.Image = installed.Image
	return nil
}

// inspectRelay finds out whether the agent has a certificate, and who serves.
func (r *via) inspectRelay(ctx context.Context) error {
	if !r.relayed() {
		found, err := r.remote.get(ctx, clusterRoleBindings, "", RelayRoleName(r.plane.ID))
		r.wasRelayed = found != nil
		return unlessForbidden(err)
	}
	var err error
	if r.serves, err = r.management.isHeld(ctx, r.MgmtNamespace, cluster.LeaseName); unlessForbidden(err) != nil {
		return fmt.Errorf("%s: reading Lease %s/%s: %w", r.management.label, r.MgmtNamespace, cluster.LeaseName, err)
	}
	uid, err := r.Relay.Store(r.management.clientset, r.plane).Enrolled(ctx, r.Name)
	if unlessForbidden(err) != nil {
		return fmt.Errorf("cluster %s: %w", r.Name, err)
	}
	if uid != "" && uid != string(r.remote.uid) {
		return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
			"an agent in another cluster has a certificate for it (kube-system UID %s, this one has %s); run `meshctl cluster revoke %s` if it is not to count any more, or choose another name", uid, r.remote.uid, r.Name)}
	}
	kept, err := storedSecret(ctx, r.remote.clientset, r.RemoteNamespace, snapshot.RelayClientSecret)
	if unlessForbidden(err) != nil {
		return err
	}
	r.enrolled = uid != "" && kept != nil
	return nil
}

// checkMove says what keeps a cluster from being reached through its agent.
func (r *via) checkMove() error {
	switch {
	case !r.moves():
		return nil
	case r.secret.Annotations[cluster.UIDAnnotation] != string(r.remote.uid):
		return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf("Secret %s/%s does not say that it is the credential of this cluster; delete it if nobody needs it, or choose another name", r.MgmtNamespace, r.Name)}
	case !r.serves:
		return fmt.Errorf("cluster %s: nothing was changed: it is reached with a credential, and can move to its agent only while `meshctl serve` runs; start it, with --relay-bind", r.Name)
	}
	return nil
}

// writeInvitation makes a token for the agent, unless it has a certificate.
func (r *via) writeInvitation(ctx context.Context) error {
	if r.enrolled {
		if err := r.Relay.Store(r.management.clientset, r.plane).Forgive(ctx, r.Name); err != nil {
			return fmt.Errorf("%s: cluster %s: %w", r.management.label, r.Name, err)
		}
		return nil
	}
	return r.invite(ctx, string(r.remote.uid))
}

func (r *via) invite(ctx context.Context, uid string) (err error) {
	r.token, r.relayRoot, err = r.Relay.Store(r.management.clientset, r.plane).Invite(ctx, r.Name, uid, r.Relay.Lasts)
	if err != nil {
		return fmt.Errorf("%s: %w", r.management.label, err)
	}
	r.report.add((&object{resource: secrets, namespace: r.MgmtNamespace, name: snapshot.RelayRecordPrefix + r.Name}).change(r.management, Updated))
	return nil
}

// writeRelay does the work for a cluster that is reached through its agent. One that has a credential keeps it until the agent has a
// certificate, and the account of that until the agent is connected: nothing is out of reach in between.
func (r *via) writeRelay(ctx context.Context) error {
	steps := []func(context.Context) error{
		r.writeCRDs, r.writeNamespaces, r.writeIdentity, moving(r.registration).endFormer, r.writeInvitation, r.writeRemote, r.removeOld, moving(r.registration).removeFormer,
	}
	if r.moves() {
		steps = append(steps, r.awaitEnrolled)
	}
	steps = append(steps, r.writeKubernetesCluster, r.removeCredential, r.forgetLeftovers)
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("cluster %s: registering: %w; run the same command again to finish", r.Name, err)
		}
	}
	if err := r.awaitAgentConnected(ctx); err != nil || r.report.Serve != ServeReaches {
		return err
	}
	if err := r.removeDirect(ctx); err != nil {
		return fmt.Errorf("cluster %s: it is reached through its agent, and what gave access to it before is still there: %w; run the same command again", r.Name, err)
	}
	return nil
}

// removeCredential removes the credential with which the cluster was reached: the registry of serve takes the agent then.
func (r *via) removeCredential(ctx context.Context) error {
	if !r.moves() {
		return nil
	}
	changes, err := r.management.delete(ctx, secrets, r.MgmtNamespace, r.Name)
	r.report.add(changes...)
	return err
}

// directObjects are what gave serve access to the cluster with a credential, in the order in which they go.
func (r *via) directObjects() []*object {
	out := []*object{{resource: clusterRoleBindings, name: BindingName(r.Name, r.plane.ID)}}
	for _, namespace := range r.meshNamespaces {
		for _, of := range []resource{roleBindings, roles} {
			out = append(out, &object{resource: of, namespace: namespace, name: SettingsRoleName(r.Name, r.plane.ID)})
		}
	}
	out = append(out,
		&object{resource: roleBindings, namespace: r.RemoteNamespace, name: TokenRoleName(r.Name)},
		&object{resource: roles, namespace: r.RemoteNamespace, name: TokenRoleName(r.Name)},
		&object{resource: policyBindings, name: TokenPolicyName(r.Name, r.plane.ID)},
		&object{resource: policies, name: TokenPolicyName(r.Name, r.plane.ID)})
	for _, account := range r.directAccounts {
		out = append(out, &object{resource: serviceAccounts, namespace: r.RemoteNamespace, name: account})
	}
	return out
}

// removeDirect removes what gave serve access to the cluster with a credential.
func (r *via) removeDirect(ctx context.Context) error {
	if len(r.directAccounts) == 0 {
		return nil
	}
	if err := r.deleteAll(ctx, r.directObjects()); err != nil {
		return err
	}
	r.report.Revoked = true
	return nil
}

// relayEnds are what an agent has on the cluster to speak for it, in the order in which they go.
func (r *via) relayEnds() []*object {
	out := relayLeftovers(r.plane.ID, r.RemoteNamespace)
	for _, namespace := range append(slices.Clone(r.meshNamespaces), r.RemoteNamespace) {
		for _, of := range []resource{roleBindings, roles} {
			out = append(out, &object{resource: of, namespace: namespace, name: RelayRoleName(r.plane.ID)})
		}
	}
	return out
}

// removeRelay removes what the agent had to speak for a cluster that is reached with a credential now.
func (r *via) removeRelay(ctx context.Context) error {
	if !r.wasRelayed {
		return nil
	}
	err := r.disown(ctx)
	if err == nil {
		err = r.deleteAll(ctx, r.relayEnds())
	}
	if err != nil {
		return fmt.Errorf("cluster %s: it is registered, and its agent may still speak for it: %w; run the command again", r.Name, err)
	}
	changes, err := removeRelayOutput(ctx, r.remote, r.RemoteNamespace)
	r.report.add(changes...)
	if err != nil {
		return fmt.Errorf("cluster %s: it is registered: %w; run the command again", r.Name, err)
	}
	changes, err = r.management.delete(ctx, secrets, r.MgmtNamespace, snapshot.RelayRecordPrefix+r.Name)
	r.report.add(changes...)
	return err
}

// removeRelayOutput removes what an agent keeps for its own restart.
func removeRelayOutput(ctx context.Context, s *server, namespace string) (done []Change, err error) {
	list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: listing ConfigMaps of namespace %s: %w", s.label, namespace, err)
	}
	for i := range list.Items {
		if !strings.HasPrefix(list.Items[i].Name, snapshot.RelayOutputPrefix) {
			continue
		}
		changes, err := s.delete(ctx, configMaps, namespace, list.Items[i].Name)
		if done = append(done, changes...); err != nil {
			return done, err
		}
	}
	return done, nil
}

// awaitEnrolled waits until the agent of a cluster that moves has a certificate: it reaches serve then.
func (r *via) awaitEnrolled(ctx context.Context) error {
	if r.enrolled {
		return nil
	}
	store := r.Relay.Store(r.management.clientset, r.plane)
	r.Progress(fmt.Sprintf("Waiting until the agent of cluster %s has a certificate; the cluster is reached as before until then", r.Name))
	err := wait.PollUntilContextTimeout(ctx, time.Second, max(r.ServeWait, time.Second), true, func(ctx context.Context) (bool, error) {
		uid, err := store.Enrolled(ctx, r.Name)
		if err != nil || uid == "" {
			return false, err
		}
		left, err := storedSecret(ctx, r.remote.clientset, r.RemoteNamespace, snapshot.RelayClientSecret)
		return left != nil, err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case wait.Interrupted(err):
		return fmt.Errorf("its agent has got no certificate within %s: %s. The cluster is still reached with its credential", r.ServeWait, r.agentTrouble(ctx))
	}
	return err
}

// agentTrouble says what is known of why an agent does not connect, and the next step.
func (r *via) agentTrouble(ctx context.Context) string {
	name := AgentName(r.plane.ID)
	deployed, err := r.remote.get(ctx, deployments, r.RemoteNamespace, name)
	if err == nil && deployed == nil {
		if runs, err := r.remote.isHeld(ctx, r.RemoteNamespace, snapshot.AgentLease); err == nil && runs {
			return "an agent runs that is not in a Deployment of this registration, and its log says why"
		}
		return "no Deployment of it is there; run it yourself: " + r.agentCommand()
	}
	pods, err := r.remote.clientset.CoreV1().Pods(r.RemoteNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{"app.kubernetes.io/name": agentAppName, snapshot.PlaneLabel: r.plane.ID}.String(),
	})
	logs := fmt.Sprintf("`kubectl -n %s logs deployment/%s` on the cluster says why", r.RemoteNamespace, name)
	if err != nil {
		return logs
	}
	for i := range pods.Items {
		if why := trouble(&pods.Items[i]); why != "" {
			return fmt.Sprintf("pod %s/%s: %s; %s", r.RemoteNamespace, pods.Items[i].Name, why, logs)
		}
	}
	if len(pods.Items) == 0 {
		return fmt.Sprintf("its Deployment has no pods; `kubectl -n %s describe deployment %s` on the cluster says why", r.RemoteNamespace, name)
	}
	return fmt.Sprintf("it dials %s: that address has to be reached from the pods of the cluster; %s", r.Relay.Server, logs)
}

// agentCommand starts the agent elsewhere than in its Deployment.
func (r *via) agentCommand() string {
	return fmt.Sprintf("`meshctl agent --namespace %s %s`", r.RemoteNamespace, strings.Join(r.relayArgs(), " "))
}

// relayAccess is what handing out the rights of the relay takes on the cluster, and taking those away that were before.
func (r *via) relayAccess(ctx context.Context) ([]access, error) {
	var wanted []access
	remove := func(objects []*object) {
		for _, o := range objects {
			wanted = append(wanted, o.access(o.namespace, o.name).each("delete")...)
		}
	}
	if r.wasRelayed {
		remove(r.relayEnds())
		for _, of := range []resource{roles, roleBindings} {
			wanted = append(wanted, of.access(r.RemoteNamespace, moreName(r.plane.ID)).each("patch")...)
		}
		wanted = append(wanted, configMaps.access(r.RemoteNamespace, "").each("list", "delete")...)
	}
	if !r.relayed() {
		return wanted, nil
	}
	if len(r.directAccounts) > 0 {
		remove(r.directObjects())
	}
	wanted = append(wanted, secrets.access(r.RemoteNamespace, snapshot.RelayClientSecret).each("get")...)
	wanted = append(wanted, leases.access(r.RemoteNamespace, snapshot.AgentLease).each("get")...)
	for _, name := range []string{snapshot.RelayRootSecret, snapshot.RelayTokenSecret} {
		wanted = append(wanted, applyVerbs(secrets.access(r.RemoteNamespace, name))...)
	}
	leave, err := r.remote.grantAccess(ctx, clusterRoles.access("", snapshot.RelayLeaveName(r.plane.ID)), ruleAccesses(leaveRules(r.plane.ID)))
	if err != nil {
		return nil, err
	}
	wanted = append(wanted, leave...)
	for namespace, rules := range r.relayNamespaces() {
		granted := ruleAccesses(rules)
		for i := range granted {
			granted[i].namespace = namespace
		}
		more, err := r.remote.grantAccess(ctx, roles.access(namespace, RelayRoleName(r.plane.ID)), granted)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, more...)
	}
	return wanted, nil
}

// uid is that of the registered cluster; empty if its agent has not said it yet.
func (r *via) uid() string {
	if r.remote == nil {
		return r.invitedUID
	}
	return string(r.remote.uid)
}
