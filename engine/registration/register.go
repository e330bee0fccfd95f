package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// registration is one run of Register.
type registration struct {
	Options
	management, remote *server

	// What preflight finds out. The endpoint is stored; dialled is how the caller reaches the
	// same server: another only where the caller cannot dial the first.
	endpoint, dialled *cluster.Credential
	secret            *corev1.Secret
	plane             snapshot.Plane
	// inside: serve runs in the management cluster.
	inside bool
	// old are objects of names that registrations before had, and former what they had in another namespace.
	old     []*object
	former  former
	missing struct {
		managementNamespace, remoteNamespace, identity bool
		crds, remoteCRDs                               []*object
	}
	leftovers bool
	// account is the ServiceAccount for serve, before are those of registrations before, with their UIDs, until they are
	// revoked. kept: the account and its stored credential stay.
	account string
	before  map[string]string
	kept    bool
	// lifetime is with what the tokens of the cluster are renewed already; zero if unknown.
	lifetime time.Duration
	// suffixes end the names that are kept to management planes, ascending.
	suffixes []string
	// policies: those that users write in the cluster count, by the Settings.
	policies bool
	// meshNamespaces are those with a control plane, and meshNames the Meshes, ascending.
	meshNamespaces, meshNames []string
	// agentImage is that of the agent that runs; empty if none does.
	agentImage string
	// vault is what the agent may log in to.
	vault vaultAccess

	// via is what is about a cluster that is reached through its agent, or was.
	via *via

	report Report
}

// Register makes a cluster known to the management plane. It first makes sure
// that all of it can work, and writes nothing until then: an error with a
// Report of no changes means that nothing was written, one with changes that
// the same call will finish the work. Registering again replaces the credential, and
// revokes what was issued before: when serve, if it runs, has said that it reaches the cluster with
// the new one, or at the end of Options.ServeWait. If serve fails to, what it has stays valid.
func Register(ctx context.Context, options Options) (Report, error) {
	r, err := newRegistration(options)
	if err != nil {
		return Report{}, err
	}
	if err := r.preflight(ctx); err != nil {
		return Report{}, err
	}
	if r.via.relayed() {
		err = r.via.writeRelay(ctx)
		return r.report, err
	}
	if err = r.write(ctx); err == nil {
		err = r.awaitServe(ctx)
	}
	var unusable *ServeError
	switch {
	case err == nil:
		if err = r.revoke(ctx); err == nil {
			err = r.via.removeRelay(ctx)
		}
	case errors.As(err, &unusable) && len(r.before) > 0:
		r.report.note("the credential of before is still accepted, because serve cannot use the new one; register the cluster again to revoke it")
	}
	return r.report, err
}

// write does the work, in an order in which every step only needs earlier
// ones, and in which the cluster becomes known last.
func (r *registration) write(ctx context.Context) error {
	steps := []func(context.Context) error{
		r.writeCRDs,
		r.writeNamespaces,
		r.writeIdentity,
		r.keepAccount,
		moving(r).endFormer,
		r.removeAgentAccount,
		r.writeRemote,
		r.writeCredential,
		r.removeOld,
		moving(r).removeFormer,
		r.writeKubernetesCluster,
		r.forgetLeftovers,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("cluster %s: registering: %w", r.Name, err)
		}
	}
	return nil
}

func (r *registration) apply(ctx context.Context, s *server, o *object) error {
	change, err := s.apply(ctx, o)
	if err == nil {
		r.report.add(change)
	}
	return err
}

func (r *registration) writeCRDs(ctx context.Context) error {
	if err := r.via.writeManagementCRDs(ctx); err != nil || r.remote.uid == r.management.uid {
		return err
	}
	changes, err := crdsOn(r.remote).applyCRDs(ctx, r.missing.remoteCRDs)
	r.report.add(changes...)
	return err
}

func (r *registration) writeNamespaces(ctx context.Context) error {
	if err := r.via.writeManagementNamespace(ctx); err != nil {
		return err
	}
	// Asked again: the management cluster may be the one that is registered.
	exists, err := r.remote.namespaceExists(ctx, r.RemoteNamespace)
	if exists || err != nil {
		return err
	}
	return r.apply(ctx, r.remote, wantedBy(r).remoteNamespaceObject())
}

// writeIdentity stores the identity of the management plane with its first cluster.
func (r *registration) writeIdentity(ctx context.Context) error {
	if !r.missing.identity {
		return nil
	}
	id, err := cluster.KeepPlaneID(ctx, r.management.clientset, r.MgmtNamespace)
	if err != nil {
		return err
	}
	if id != r.plane.ID {
		return fmt.Errorf("%s: the identity of the management plane was stored in the meantime; try again", r.management.label)
	}
	r.report.add((&object{resource: configMaps, namespace: r.MgmtNamespace, name: cluster.PlaneName}).change(r.management, Created))
	return nil
}

func (r *registration) writeRemote(ctx context.Context) error {
	for _, o := range wantedBy(r).remoteObjects() {
		o.owner = r.via.owner
		if err := r.apply(ctx, r.remote, o); err != nil {
			return err
		}
		if err := r.via.own(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// writeCredential asks for a credential of the new account, and stores it once it is known to work.
func (r *registration) writeCredential(ctx context.Context) error {
	o := &object{resource: secrets, namespace: r.MgmtNamespace, name: r.Name}
	if r.kept {
		r.report.add(o.change(r.management, Unchanged))
		return nil
	}
	account, err := r.remote.get(ctx, serviceAccounts, r.RemoteNamespace, r.account)
	if err != nil {
		return err
	}
	if account == nil {
		return fmt.Errorf("%s: ServiceAccount %s/%s was deleted in the meantime; try again", r.remote.label, r.RemoteNamespace, r.account)
	}
	user, uid := cluster.ServiceAccountUser(r.RemoteNamespace, r.account), string(account.GetUID())
	c := *r.endpoint
	var life cluster.Lifetime
	if c.Token, life, err = cluster.RequestToken(ctx, r.remote.clientset, r.RemoteNamespace, r.account, r.ttl()); err != nil {
		return err
	}
	if granted := life.Granted(); granted != r.ttl() {
		r.report.note((&cluster.ShortenedError{Granted: granted, Wanted: r.ttl()}).Error())
	}
	if err := cluster.Verify(ctx, r.Name, endpointsFor(r).with(&c), user, uid); err != nil {
		return err
	}
	own := access{verb: "create", resource: "serviceaccounts/token", name: r.account, namespace: r.RemoteNamespace}
	if err := verifyGrants(ctx, r.Name, endpointsFor(r).with(&c), slices.Concat(ruleAccesses(remoteRules(r.policies)), r.settingsAccess(), []access{own})); err != nil {
		return err
	}
	if err := r.verifyLimit(ctx, endpointsFor(r).with(&c)); err != nil {
		return err
	}
	if o.want, err = cluster.NewSecret(r.MgmtNamespace, r.Name, r.remote.uid, &c, life); err != nil {
		return err
	}
	return r.apply(ctx, r.management, o)
}

// ttl is the lifetime of a token to ask for.
func (r *registration) ttl() time.Duration { return cmp.Or(r.TokenTTL, r.lifetime, DefaultTokenTTL) }

// keepStored reports whether the stored credential needs no successor.
func (r *registration) keepStored(ctx context.Context, user, uid string) bool {
	if r.secret == nil || r.lifetime != r.ttl() || r.secret.Annotations[cluster.UIDAnnotation] != string(r.remote.uid) {
		return false
	}
	stored, life, err := cluster.ParseSecret(r.secret)
	if err != nil || !stored.SameEndpoint(r.endpoint) || life.IsZero() || !r.Clock.Now().Before(life.RenewAt(r.Name)) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return cluster.Verify(ctx, r.Name, endpointsFor(r).with(stored), user, uid) == nil
}

func (r *registration) forgetLeftovers(ctx context.Context) error {
	if !r.leftovers {
		return nil
	}
	change, err := r.management.delete(ctx, configMaps, r.MgmtNamespace, LeftoverName(r.Name))
	r.report.add(change...)
	return err
}

// CheckRegister says why Register would write nothing; nil if it would go on. It writes nothing, and
// returns the version of the cluster's API server, if that answers.
func CheckRegister(ctx context.Context, options Options) (kubernetes string, err error) {
	r, err := newRegistration(options)
	if err != nil {
		return "", err
	}
	err = r.preflight(ctx)
	return r.remote.version, err
}
