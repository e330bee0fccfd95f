package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// installation is one run of Install.
type installation struct {
	InstallOptions
	server *server
	// missing are the types to write.
	missing []*object
	// namespaceExists is true if the namespace is there; it stays as it is then.
	namespaceExists bool
	report          Report
}

func newInstallation(options InstallOptions) (*installation, error) {
	i := &installation{InstallOptions: options}
	orDefault(&i.Namespace, cluster.DefaultNamespace)
	var err error
	i.server, err = newServer(managementSide, i.Context, i.Config, i.Timeout)
	return i, err
}

// Install has serve run in the management cluster, or upgrades what runs there: first the types, then
// permissions, then the Deployment. Like Register, it writes nothing until it is known that all of it
// can be written, and repeating it finishes what was interrupted. No object is deleted at any time but the configurations of
// an admission webhook that is switched off.
func Install(ctx context.Context, options InstallOptions) (Report, error) {
	i, err := newInstallation(options)
	if err != nil {
		return Report{}, err
	}
	if err := i.preflight(ctx); err != nil {
		return Report{}, err
	}
	if err := i.write(ctx); err != nil {
		return i.report, fmt.Errorf("namespace %s: installing: %w; run the same command again to finish", i.Namespace, err)
	}
	if i.Wait > 0 {
		err = i.await(ctx)
	}
	return i.report, err
}

// preflight finds out what there is and whether the rest can be written. It changes nothing.
func (i *installation) preflight(ctx context.Context) error {
	if err := i.server.probe(ctx); err != nil {
		return err
	}
	if err := i.inspect(ctx); err != nil {
		return err
	}
	if err := i.complete(); err != nil {
		return err
	}
	absent, err := i.server.lacksNamespace(ctx, i.Namespace)
	if err != nil {
		return err
	}
	i.namespaceExists = !absent
	if i.missing, err = crdsOn(i.server).outdatedCRDs(ctx, ""); err != nil {
		return err
	}
	if err := i.server.require(ctx, i.wanted()); err != nil {
		return err
	}
	if err := crdsOn(i.server).loseNothing(ctx, i.missing); err != nil {
		return err
	}
	var foreign []error
	for _, o := range i.objects() {
		if _, err := i.server.owned(ctx, o); err != nil {
			foreign = append(foreign, err)
		}
	}
	return errors.Join(foreign...)
}

// inspect finds what is installed.
func (i *installation) inspect(ctx context.Context) error {
	found, err := i.server.get(ctx, deployments, i.Namespace, ServeName)
	if unlessForbidden(err) != nil {
		return err
	}
	var d appsv1.Deployment
	if found != nil && found.GetLabels()[cluster.ManagedByLabel] == "Helm" {
		return fmt.Errorf("%s: Deployment %s/%s was installed by Helm; use `helm upgrade`", i.server.label, i.Namespace, ServeName)
	}
	if found == nil || found.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy {
		if i.Upgrade {
			return &NotInstalledError{Server: i.server.label, Namespace: i.Namespace}
		}
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &d); err != nil {
		return fmt.Errorf("Deployment %s/%s: decoding: %w", i.Namespace, ServeName, err)
	}
	monitor, err := i.server.get(ctx, serviceMonitors, i.Namespace, ServeName)
	if unlessForbidden(err) != nil && !kube.IsAbsent(err) {
		return err
	}
	service, err := i.server.get(ctx, services, i.Namespace, snapshot.RelayService)
	if unlessForbidden(err) != nil {
		return err
	}
	i.inherit(&d, monitor != nil)
	i.Relay.inherit(&d, service, i.Namespace)
	i.Webhook.inherit(&d)
	i.noteRelay(service)
	return nil
}

// NotInstalledError says that there is nothing to upgrade.
type NotInstalledError struct{ Server, Namespace string }

func (e *NotInstalledError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *NotInstalledError) Advice() (what, hint string) {
	return fmt.Sprintf("%s: meshctl is not installed in namespace %s: there is no Deployment %s of it", e.Server, e.Namespace, ServeName),
		"run `meshctl install`, or use --namespace"
}

// wanted are the rights that it takes, with those that are handed out.
func (i *installation) wanted() []access {
	var wanted []access
	for _, o := range i.objects() {
		if o.resource == namespaces && i.namespaceExists {
			continue
		}
		wanted = append(wanted, applyVerbs(o.access(o.namespace, o.name))...)
	}
	for _, crd := range i.missing {
		wanted = append(wanted, applyVerbs(crdResource.access("", crd.name))...)
	}
	wanted = append(wanted, crdResource.access("", "").each("list")...)
	wanted = append(wanted, ruleAccesses(i.clusterRules())...)
	own := ruleAccesses(i.rules())
	for n := range own {
		own[n].namespace = i.Namespace
	}
	return slices.Concat(wanted, own)
}

func (i *installation) write(ctx context.Context) error {
	if len(i.missing) > 0 {
		i.Progress(fmt.Sprintf("writing %d custom resource types", len(i.missing)))
	}
	changes, err := crdsOn(i.server).applyCRDs(ctx, i.missing)
	i.report.add(changes...)
	if err != nil {
		return err
	}
	changes, err = removeWebhooks(ctx, i.server, i.Namespace, i.Webhook.objects(i.Namespace))
	i.report.add(changes...)
	if err != nil {
		return err
	}
	for _, o := range i.objects() {
		if o.resource == namespaces && i.namespaceExists {
			continue
		}
		change, err := i.server.apply(ctx, o)
		if err != nil {
			return err
		}
		i.report.add(change)
	}
	return nil
}

// InstallManifests are the objects that Install writes, in its order, without those that are there
// being looked at: for GitOps, and for Helm.
func InstallManifests(options InstallOptions) ([]any, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	types, err := allCRDs()
	if err != nil {
		return nil, err
	}
	var out []any
	for _, o := range slices.Concat(options.objects()[:1], types, options.objects()[1:]) {
		out = append(out, o.want)
	}
	return out, nil
}

// CheckInstall says why Install would write nothing; nil if it would go on. It writes nothing, and
// returns the version of the API server, if that answers.
func CheckInstall(ctx context.Context, options InstallOptions) (kubernetes string, err error) {
	i, err := newInstallation(options)
	if err != nil {
		return "", err
	}
	err = i.preflight(ctx)
	return i.server.version, err
}
