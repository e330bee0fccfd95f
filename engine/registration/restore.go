package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// RestoreOptions configure Restore.
type RestoreOptions struct {
	// Config is the client configuration of the management cluster, with the permissions of an administrator, and Context what messages
	// call it; optional.
	Config  *rest.Config
	Context string
	// Force replaces objects that are there and are others than those of the Backup, and leaves what the Backup does not have.
	Force bool
	// DryRun writes nothing; the Report says what would be written.
	DryRun bool
	// Progress gets a sentence for each step and each long wait; nil for none.
	Progress func(string)
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// RestoringAnnotation is on an object that is not restored completely: a run was interrupted, or is under way. Its value tells the Backup.
const RestoringAnnotation = "registration.multicluster.solo.io/restoring"

// restoreManager owns fields of an object until those are their managers' again who had them.
const restoreManager = snapshot.FieldManager + "-restore"

// restoration is one run of Restore.
type restoration struct {
	RestoreOptions
	backup *Backup
	server *server
	// missing are the types to write.
	missing []*object
	// stages are what is written, one after the other.
	stages [][]*restoredList
	// generations and uids are those of the objects as they were in the Backup, and are.
	generations generations
	uids        *uidMap
	report      Report
}

// Restore makes the management plane of a Backup in a cluster that has none: the same objects with the same identity, statuses and owners
// of fields. Policies are created in the order of their age, so that of two in conflict the same one applies: see restoreorder.go. The
// registrations come last, so that a serve that starts early finds no cluster to write to. It writes nothing before it is known that no
// serve runs there, and that nothing there is lost. Repeating it finishes what was interrupted.
func Restore(ctx context.Context, b *Backup, o RestoreOptions) (Report, error) {
	r := &restoration{RestoreOptions: o, backup: b, uids: newUIDMap(), generations: generations{}}
	if r.Progress == nil {
		r.Progress = func(string) {}
	}
	var err error
	if r.server, err = newServer(managementSide, o.Context, o.Config, o.Timeout); err != nil {
		return Report{}, err
	}
	if err := r.preflight(ctx); err != nil {
		return Report{}, err
	}
	if o.DryRun {
		r.tell()
		return r.report, nil
	}
	err = r.write(ctx)
	r.tell()
	if err != nil {
		return r.report, fmt.Errorf("restoring namespace %s of %s: %w; run the same command again to finish, before serve is started", b.Namespace, r.server.label, err)
	}
	return r.report, nil
}

// preflight finds out what there is, and whether the rest can be written. It changes nothing.
func (r *restoration) preflight(ctx context.Context) error {
	if err := r.server.probe(ctx); err != nil {
		return err
	}
	if err := r.notServed(ctx); err != nil {
		return err
	}
	var err error
	if r.missing, err = crdsOn(r.server).outdatedCRDs(ctx, ""); err != nil {
		return err
	}
	if err := r.server.require(ctx, r.needed()); err != nil {
		return err
	}
	if err := crdsOn(r.server).loseNothing(ctx, r.missing); err != nil {
		return err
	}
	r.stages = stagesOf(r.backup)
	occupied, err := r.inspect(ctx)
	switch {
	case err != nil:
		return err
	case len(occupied) > 0 && !r.Force:
		return &OccupiedError{Server: r.server.label, Objects: occupied}
	}
	return r.onePlane(ctx)
}

// onePlane returns an error if another management plane has registered clusters in the namespace: what it has written there would be
// nobody's.
func (r *restoration) onePlane(ctx context.Context) error {
	for _, l := range r.lists(snapshot.ConfigMap) {
		for _, o := range l.objects {
			if !isIdentity(o.was, r.backup.Namespace) || o.step != restoreReplace {
				continue
			}
			registered, err := r.server.listKubernetesClusters(ctx, r.backup.Namespace)
			if err != nil {
				return err
			}
			if len(registered) > 0 {
				return fmt.Errorf("%s: namespace %s has another management plane, with %s; restore into another cluster, or remove that one with `meshctl uninstall`",
					r.server.label, r.backup.Namespace, snapshot.Count(len(registered), "cluster"))
			}
		}
	}
	return nil
}

// needed is what the caller needs to be allowed to do.
func (r *restoration) needed() []access {
	out := crdResource.access("", "").each("create", "patch", "get")
	seen := map[resource]bool{}
	for _, o := range r.backup.Objects {
		kind, _ := resourceOf(o)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		out = append(out, kind.access("", "").each("get", "list", "create", "update")...)
		if r.Force {
			out = append(out, kind.access("", "").each("delete")...)
		}
		if k := refOf(o).Kind; k.Info().Access&snapshot.WriteStatus != 0 {
			status := kind
			status.Resource += "/status"
			out = append(out, status.access("", "").each("update")...)
		}
	}
	return out
}

// ServedError says that a meshctl serve works where a Backup is to be restored.
type ServedError struct{ Server, Namespace, How string }

func (e *ServedError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *ServedError) Advice() (what, hint string) {
	return fmt.Sprintf("%s: a meshctl serve works in namespace %s (%s), and would act on what is only half restored", e.Server, e.Namespace, e.How),
		fmt.Sprintf("end it first, with `kubectl scale deployment --namespace %s %s --replicas 0` if it runs in the cluster, and wait until it is gone", e.Namespace, ServeName)
}

// notServed returns a ServedError if a serve works in the namespace, or will.
func (r *restoration) notServed(ctx context.Context) error {
	failed := &ServedError{Server: r.server.label, Namespace: r.backup.Namespace}
	installed, err := r.server.installedServer(ctx, r.backup.Namespace)
	if err != nil {
		return err
	}
	if installed != nil && installed.Replicas > 0 {
		failed.How = fmt.Sprintf("Deployment %s has %s", ServeName, snapshot.Count(int(installed.Replicas), "replica"))
		return failed
	}
	held, err := r.server.isHeld(ctx, r.backup.Namespace, cluster.LeaseName)
	if err != nil {
		return fmt.Errorf("%s: reading Lease %s/%s: %w", r.server.label, r.backup.Namespace, cluster.LeaseName, err)
	}
	if held {
		failed.How = "it holds Lease " + cluster.LeaseName
		return failed
	}
	return nil
}

// OccupiedError says that there are other objects where a Backup is to be restored.
type OccupiedError struct {
	Server string
	// Objects are what is there, each with the reason why it is in the way.
	Objects []string
}

func (e *OccupiedError) Error() string { return snapshot.Sentences(e.Advice()) }

// mostOccupied bounds the objects that an error lists.
const mostOccupied = 10

// Advice implements [snapshot.Advice].
func (e *OccupiedError) Advice() (what, hint string) {
	listed := strings.Join(e.Objects[:min(len(e.Objects), mostOccupied)], "; ")
	if more := len(e.Objects) - mostOccupied; more > 0 {
		listed += fmt.Sprintf("; and %d more", more)
	}
	are := "are"
	if len(e.Objects) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s: %s %s there and not as in the backup: %s", e.Server, snapshot.Count(len(e.Objects), "object"), are, listed),
		"restore into a cluster without a management plane, or set --force to replace those that differ; what the backup does not have stays"
}

// parallelRestores bounds the objects that are written at once.
const parallelRestores = 8

// write writes what is missing, stage by stage.
func (r *restoration) write(ctx context.Context) error {
	changes, err := crdsOn(r.server).applyCRDs(ctx, r.missing)
	r.report.add(changes...)
	if err != nil {
		return err
	}
	for _, lists := range r.stages {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallelRestores)
		for _, l := range lists {
			group.Go(func() error { return l.write(ctx, r) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// tell enters into the report what was done, and what is left to do.
func (r *restoration) tell() {
	for _, lists := range r.stages {
		for _, l := range lists {
			r.report.add(l.changes(r.DryRun)...)
		}
	}
	for _, note := range r.notes() {
		r.report.note(note)
	}
}

// notes say what is not in the Backup, and how to make it anew.
func (r *restoration) notes() []string {
	var out []string
	if r.backup.ClusterUID == r.server.uid {
		out = append(out, "this is the cluster of which the backup was made")
	}
	leftOut := map[types.NamespacedName]string{}
	for _, s := range r.backup.LeftOut {
		leftOut[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s.Type
	}
	var relayed []string
	for _, l := range r.lists(snapshot.KubernetesCluster) {
		for _, o := range l.objects {
			notes, byAgent := r.ofCluster(o, leftOut)
			out = append(out, notes...)
			if byAgent {
				relayed = append(relayed, o.was.GetName())
			}
		}
	}
	out = append(out, ofAgents(relayed)...)
	for _, l := range r.lists(snapshot.VirtualMesh) {
		for _, o := range l.objects {
			out = append(out, ofVirtualMesh(o, r.backup.Namespace, leftOut)...)
		}
	}
	return out
}

// ofAgents says what the agents of clusters need to come back, whose records are in the Backup: they know the hub by its certificate, which is
// restored, and dial the address that they have.
func ofAgents(relayed []string) []string {
	if len(relayed) == 0 {
		return nil
	}
	slices.Sort(relayed)
	names := strings.Join(relayed[:min(len(relayed), mostOccupied)], ", ")
	if more := len(relayed) - mostOccupied; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("%s reached through the agent (%s): start serve with `meshctl install --relay`, and have the address that the agents dial lead to it; "+
		"they come back by themselves, with the certificates that they have. Only if that address cannot be kept: "+
		"`meshctl cluster register NAME --relay --relay-server HOST:PORT --remote-context CONTEXT` for each", snapshot.Count(len(relayed), "cluster"), names)}
}

// ofCluster says how a cluster is reached again whose credential is not in the Backup, or leads nowhere from another cluster. ByAgent: it is
// reached through its agent, whose record is in the Backup.
func (r *restoration) ofCluster(o *restoredObject, leftOut map[types.NamespacedName]string) (notes []string, byAgent bool) {
	name, namespace := o.was.GetName(), o.was.GetNamespace()
	secret := secretNameOf(o.was)
	if secret == "" {
		if _, left := leftOut[types.NamespacedName{Namespace: namespace, Name: snapshot.RelayRecordPrefix + name}]; left {
			return []string{fmt.Sprintf("cluster %s: what is known of its agent is not in the backup; register it again: "+
				"`meshctl cluster register %s --relay --remote-context CONTEXT`, or `meshctl cluster invite %[2]s`", name, name)}, false
		}
		return nil, true
	}
	if _, left := leftOut[types.NamespacedName{Namespace: namespace, Name: secret}]; left {
		return []string{fmt.Sprintf("cluster %s: its credential is not in the backup; until it is registered again, nothing is read or written there: "+
			"`meshctl cluster register %s --remote-context CONTEXT`", name, name)}, false
	}
	if o.was.GetAnnotations()[cluster.UIDAnnotation] == string(r.backup.ClusterUID) && r.backup.ClusterUID != r.server.uid {
		return []string{fmt.Sprintf("cluster %s had the management plane: if it is reached at an address inside of it (%s), register it again: "+
			"`meshctl cluster register %s --remote-context CONTEXT`", name, inClusterServer, name)}, false
	}
	return nil, false
}

// ofVirtualMesh says what becomes of a VirtualMesh whose root has no key in the Backup.
func ofVirtualMesh(o *restoredObject, namespace string, leftOut map[types.NamespacedName]string) []string {
	name := o.was.GetNamespace() + "/" + o.was.GetName()
	if ref, ok := rootSecretOf(o.was); ok {
		if _, left := leftOut[ref]; left {
			return []string{fmt.Sprintf("VirtualMesh %s: the key of its root is not in the backup; create Secret %s before serve starts, or nobody gets a certificate", name, ref)}
		}
		return nil
	}
	for ref, kind := range leftOut {
		first := o.was.GetName() + "." + o.was.GetNamespace()
		of := ref.Name == first || strings.HasPrefix(ref.Name, first+".")
		if of && ref.Namespace == namespace && kind == snapshot.RootSecretType {
			return []string{fmt.Sprintf("VirtualMesh %s: the key of its root is not in the backup; serve makes another root and exchanges it, with the former one trusted until then; "+
				"to keep it, create its Secret before serve starts", name)}
		}
	}
	return nil
}
