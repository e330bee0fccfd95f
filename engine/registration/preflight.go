package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// preflight makes sure that registration can work, and writes nothing. Where
// several things are wrong on both servers, the error lists all.
func (r *registration) preflight(ctx context.Context) error {
	if err := both(
		func() error { return r.management.probe(ctx) },
		func() error { return r.remote.probe(ctx) },
	); err != nil {
		return err
	}
	var err error
	if r.inside, err = r.management.servesInside(ctx, r.MgmtNamespace); unlessForbidden(err) != nil {
		return err
	}
	if r.via.relayed() {
		err = r.via.findRelay(ctx, r.remote.uid == r.management.uid)
	} else if err = endpointsFor(r).findEndpoint(ctx); err != nil {
		err = fmt.Errorf("cluster %s: %w", r.Name, err)
	}
	if err != nil {
		return err
	}
	if err := r.place(ctx); err != nil {
		return err
	}
	// What is there decides which permissions are needed. What may not be
	// read counts as absent: the permission to read it is on the list, too.
	if err := both(
		func() error { return r.inspectManagement(ctx) },
		func() error { return r.inspectRemote(ctx) },
	); err != nil {
		return err
	}
	if err := r.inspectAccounts(ctx); err != nil {
		return err
	}
	if err := r.inspectMeshes(ctx); err != nil {
		return err
	}
	if err := r.inspectAgent(ctx); err != nil {
		return err
	}
	if err := r.via.inspectRelay(ctx); err != nil {
		return err
	}
	if err := both(
		func() error { return r.management.require(ctx, r.managementAccess()) },
		func() error { return r.remoteMayWrite(ctx) },
	); err != nil {
		return err
	}
	if err := moving(r).checkFormer(); err != nil {
		return err
	}
	if err := r.checkForeign(ctx); err != nil {
		return err
	}
	if err := r.checkPlanes(ctx); err != nil {
		return err
	}
	if err := r.checkTaken(ctx); err != nil {
		return err
	}
	return r.via.checkMove()
}

// both runs two checks side by side and joins what they say.
func both(one, other func() error) error {
	first := make(chan error, 1)
	go func() { first <- one() }()
	second := other()
	return errors.Join(<-first, second)
}

func (r *registration) inspectManagement(ctx context.Context) error {
	var err error
	if r.missing.managementNamespace, err = r.management.lacksNamespace(ctx, r.MgmtNamespace); err != nil {
		return err
	}
	if r.missing.crds, err = crdsOn(r.management).outdatedCRDs(ctx, ""); err != nil {
		return err
	}
	if err := r.readIdentity(ctx); err != nil {
		return err
	}
	record, err := r.management.get(ctx, configMaps, r.MgmtNamespace, LeftoverName(r.Name))
	r.leftovers = record != nil && record.GetLabels()[LeftoverLabel] == r.Name && record.GetAnnotations()[cluster.UIDAnnotation] == string(r.remote.uid)
	return unlessForbidden(err)
}

func (r *registration) inspectRemote(ctx context.Context) (err error) {
	if r.missing.remoteNamespace, err = r.remote.lacksNamespace(ctx, r.RemoteNamespace); err != nil {
		return err
	}
	if r.missing.remoteCRDs, err = crdsOn(r.remote).outdatedCRDs(ctx, agentGroup); err != nil {
		return err
	}
	r.old, err = r.remote.oldObjects(ctx, r.Name, r.RemoteNamespace)
	return unlessForbidden(err)
}

func (s *server) lacksNamespace(ctx context.Context, name string) (bool, error) {
	exists, err := s.namespaceExists(ctx, name)
	return !exists, unlessForbidden(err)
}

func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// applyVerbs are what writing an object by server-side apply needs.
func applyVerbs(a access) []access { return a.each("get", "create", "patch") }

func (r *registration) managementAccess() []access {
	var wanted []access
	if r.missing.managementNamespace {
		wanted = append(wanted, applyVerbs(namespaces.access("", r.MgmtNamespace))...)
	}
	for _, crd := range r.missing.crds {
		wanted = append(wanted, applyVerbs(crdResource.access("", crd.name))...)
	}
	identity := configMaps.access(r.MgmtNamespace, cluster.PlaneName)
	wanted = append(wanted, identity.each("get")...)
	if r.missing.identity {
		wanted = append(wanted, configMaps.access(r.MgmtNamespace, "").each("create")...)
	}
	if r.via.relayed() {
		wanted = append(wanted, r.via.relayManagementAccess()...)
	} else {
		wanted = append(wanted, applyVerbs(secrets.access(r.MgmtNamespace, r.Name))...)
	}
	if r.via.wasRelayed {
		wanted = append(wanted, secrets.access(r.MgmtNamespace, snapshot.RelayRecordPrefix+r.Name).each("delete")...)
	}
	wanted = append(wanted, applyVerbs(kubernetesClusters.access(r.MgmtNamespace, r.Name))...)
	wanted = append(wanted, kubernetesClusters.access(r.MgmtNamespace, "").each("list")...)
	wanted = append(wanted, settings.access("", "").each("list")...)
	wanted = append(wanted, virtualMeshes.access("", "").each("list")...)
	wanted = append(wanted, deployments.access(r.MgmtNamespace, ServeName).each("get")...)
	if r.ServeWait > 0 {
		wanted = append(wanted, leases.access(r.MgmtNamespace, cluster.LeaseName).each("get")...)
	}
	if r.Agent != nil {
		wanted = append(wanted, meshes.access(r.MgmtNamespace, "").each("list")...)
	}
	status := kubernetesClusters.access(r.MgmtNamespace, r.Name)
	status.resource += "/status"
	wanted = append(wanted, status.each("patch")...)
	if r.leftovers {
		wanted = append(wanted, configMaps.access(r.MgmtNamespace, LeftoverName(r.Name)).each("delete")...)
	}
	return wanted
}

// remoteMayWrite checks the rights to write the remote objects, and to grant
// what the role grants: an API server refuses roles that exceed their author.
func (r *registration) remoteMayWrite(ctx context.Context) error {
	var wanted []access
	if r.missing.remoteNamespace {
		wanted = append(wanted, applyVerbs(namespaces.access("", r.RemoteNamespace))...)
	}
	for _, crd := range r.missing.remoteCRDs {
		wanted = append(wanted, applyVerbs(crdResource.access("", crd.name))...)
	}
	for _, o := range wantedBy(r).remoteObjects() {
		if o.resource != serviceAccounts {
			wanted = append(wanted, applyVerbs(o.access(o.namespace, o.name))...)
		}
	}
	// Each registration has an account of another name.
	accounts := serviceAccounts.access(r.RemoteNamespace, "")
	wanted = append(wanted, accounts.each("create", "delete", "get", "list", "patch")...)
	for _, o := range r.old {
		wanted = append(wanted, o.access("", o.name).each("delete")...)
	}
	wanted = append(wanted, clusterRoleBindings.access("", "").each("list")...)
	accounts.resource += "/token"
	wanted = append(wanted, accounts.each("create")...)
	wanted = append(wanted, deployments.access("", "").each("list")...)
	wanted = append(wanted, webhooks.access("", "").each("list")...)
	grants, err := r.remote.grantAccess(ctx, clusterRoles.access("", RoleName(r.plane.ID)), ruleAccesses(remoteRules(r.policies)))
	if err != nil {
		return err
	}
	for _, namespace := range r.meshNamespaces {
		role := roles.access(namespace, SettingsRoleName(r.Name, r.plane.ID))
		more, err := r.remote.grantAccess(ctx, role, configMaps.access(namespace, "").each(readVerbs...))
		if err != nil {
			return err
		}
		grants = append(grants, more...)
	}
	agent, err := r.agentGrants(ctx)
	if err != nil {
		return err
	}
	grants = append(grants, agent...)
	more, err := r.via.relayAccess(ctx)
	if err != nil {
		return err
	}
	grants = append(grants, more...)
	return r.remote.require(ctx, slices.Concat(wanted, grants, moving(r).formerAccess()))
}

// checkForeign rejects objects that meshctl did not create.
func (r *registration) checkForeign(ctx context.Context) error {
	for _, o := range wantedBy(r).remoteObjects() {
		found, err := r.remote.owned(ctx, o)
		if err != nil {
			return err
		}
		if found != nil && !r.wrote(found) {
			return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
				"another management plane has registered it under this name (%s belongs to %s); choose another name or another --remote-namespace",
				o.describe(), planeOf(found))}
		}
	}
	return nil
}

// checkTaken rejects a name that is another cluster's, and a second name for
// one cluster: it would be discovered twice.
func (r *registration) checkTaken(ctx context.Context) error {
	var err error
	if r.secret, err = storedSecret(ctx, r.management.clientset, r.MgmtNamespace, r.Name); err != nil {
		return err
	}
	if r.secret != nil && r.secret.Type != cluster.SecretType {
		return &ForeignObjectError{Server: r.management.label, Object: "Secret " + r.MgmtNamespace + "/" + r.Name, Hint: nameHint}
	}
	all, err := r.management.listKubernetesClusters(ctx, r.MgmtNamespace)
	if err != nil {
		return err
	}
	known := ""
	for _, kc := range all {
		uid := kc.Annotations[cluster.UIDAnnotation]
		switch {
		case kc.Name == r.Name:
			known = uid
			if kc.Annotations[snapshot.LeavingAnnotation] != "" {
				return leavesError(r.Name, r.MgmtNamespace)
			}
			r.lifetime = cluster.ParseLifetime(kc.Annotations[cluster.LifetimeAnnotation])
			if ns := kc.Status.Namespace; ns != "" && ns != r.RemoteNamespace && ns != r.former.namespace && uid == string(r.remote.uid) {
				return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
					"its account is in namespace %s; use --remote-namespace %s, or deregister it first", ns, ns)}
			}
		case uid == string(r.remote.uid):
			return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
				"it is registered as %s already; run `meshctl cluster deregister %s` first", kc.Name, kc.Name)}
		}
	}
	if known == "" && r.secret != nil {
		known = r.secret.Annotations[cluster.UIDAnnotation]
	}
	if known != "" && known != string(r.remote.uid) {
		return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
			"it is the name of another cluster (kube-system UID %s, this one has %s); deregister that first or choose another name", known, r.remote.uid)}
	}
	if known == "" && r.secret != nil && !r.via.relayed() {
		return r.checkUnmarked()
	}
	return nil
}

// checkUnmarked checks a Secret that does not name its cluster. A broken one may be
// replaced; a valid one only if it is for this cluster.
func (r *registration) checkUnmarked() error {
	stored, _, err := cluster.ParseSecret(r.secret)
	if err != nil || stored.Server == r.endpoint.Server {
		return nil //nolint:nilerr // registering replaces a broken Secret
	}
	return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
		"Secret %s/%s leads to %s; delete it if nobody needs it, or choose another name", r.MgmtNamespace, r.Name, stored.Server)}
}
