package accesslogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TapOptions are those of `meshctl tap`.
type TapOptions struct {
	Options
	// Workload is the one whose requests are logged: NAME, NAME.NAMESPACE or NAME.NAMESPACE.CLUSTER.
	Workload string
	// For is how long.
	For time.Duration

	// made is the AccessLogRecord.
	made *observabilityv1.AccessLogRecord
}

// Bounds of a tap.
const (
	defaultTap = time.Minute
	maxTap     = time.Hour
	// tapCleanup is how long the record may take to be removed.
	tapCleanup = 15 * time.Second
	tapPrefix  = "tap-"
	// tapKnown is how long meshctl serve may take to know the record.
	tapKnown = 10 * time.Second
)

const tapLong = `Shows the requests of a workload one by one as they come, for a while: those
that it gets, and those that it sends. WORKLOAD is its name, or NAME.NAMESPACE,
or NAME.NAMESPACE.CLUSTER where others have the same name.

For that, meshctl creates an AccessLogRecord in the namespace of the management
plane, and removes it when the time is over or you interrupt it. If it cannot,
because it was killed, nothing is logged for the record after its time either,
and the next tap removes it.

What is logged, and what Istio has to be told before, is said in "meshctl help
access-logs". Others who may read access logs see the same requests.`

const tapExample = `  # Follow the requests of reviews-v1 for a minute
  meshctl tap reviews-v1

  # Follow for ten minutes those that fail
  meshctl tap reviews-v1.bookinfo.cluster-2 --for 10m --status '>=500'`

// NewTapCmd returns the command; runF replaces the run in tests.
func NewTapCmd(f *cmdutil.Factory, runF func(context.Context, *TapOptions) error) *cobra.Command {
	opts := &TapOptions{Options: Options{Streams: f.Streams, Now: f.Now, every: time.Second, Watch: true}}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     "tap WORKLOAD",
		Short:   "Show the requests of a workload as they come",
		Long:    tapLong,
		Example: tapExample,
		Args:    cmdutil.Args("WORKLOAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Workload = args[0]
			opts.Query.Limit = accesslog.MaxShown
			if opts.For < time.Second || opts.For > maxTap {
				return cmdutil.FlagErrorf("--for %s: want 1s to %s", opts.For, maxTap)
			}
			if err := opts.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return tap(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	cmd.Flags().DurationVar(&opts.For, "for", defaultTap, "how long, at most "+maxTap.String())
	return cmd
}

func tap(ctx context.Context, o *TapOptions) (err error) {
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	selector, err := o.selector(ctx)
	if err != nil {
		return err
	}
	// Who cannot be asked now would have the record logged for nobody.
	if _, err := o.ask(ctx); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(management.Config)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	records := client.Resource(snapshot.AccessLogRecord.GroupVersionResource()).Namespace(management.Namespace)
	if err := o.sweep(ctx, records); err != nil {
		return err
	}
	if err := o.create(ctx, records, selector); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tapCleanup)
		defer cancel()
		if gone := records.Delete(ctx, o.made.Name, metav1.DeleteOptions{}); gone != nil {
			err = errors.Join(err, fmt.Errorf("AccessLogRecord %s/%s is not removed: %w; nothing is logged for it after %s, remove it with: kubectl delete accesslogrecord -n %s %s",
				o.made.Namespace, o.made.Name, gone, o.made.Annotations[snapshot.LogUntilAnnotation], o.made.Namespace, o.made.Name))
			return
		}
		cmdutil.Say(o.Streams, "AccessLogRecord %s/%s is removed.", o.made.Namespace, o.made.Name)
	}()
	cmdutil.Say(o.Streams, "AccessLogRecord %s/%s logs the requests of %s for %s.", o.made.Namespace, o.made.Name, o.Workload, o.For)
	o.record = o.made.Name + "." + o.made.Namespace
	o.Query.Name = o.record
	watching, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	if err := o.known(watching); err != nil {
		return err
	}
	if err := run(watching, &o.Options); err != nil && watching.Err() == nil {
		return err
	}
	return nil
}

// known waits until meshctl serve knows the record, so that what is printed first has what it says of it.
func (o *TapOptions) known(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tapKnown)
	defer cancel()
	for {
		report, err := o.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(report.Records) > 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
	}
}

// selector selects the pods of the workload, as the management cluster knows it.
func (o *TapOptions) selector(ctx context.Context) (*commonv1.KubeWorkloadMatcher, error) {
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return nil, err
	}
	ref, err := cmdutil.Pick(read.Index(nil), snapshot.Workload, o.Workload)
	if err != nil {
		return nil, err
	}
	w, found := read.Input.Find(ref).(*discoveryv1.Workload)
	if !found || w.Spec.Kubernetes == nil {
		return nil, fmt.Errorf("Workload %s: nothing is known of its pods; wait until meshctl serve has discovered them", ref.Name)
	}
	k := w.Spec.Kubernetes
	// What a record selects by labels, pods of other workloads may have as well.
	o.Query.Workload = k.Controller.Name + "." + k.Controller.Namespace + "." + k.Controller.ClusterName
	if len(k.PodLabels) == 0 {
		return nil, fmt.Errorf("Workload %s: its pods have no label in common, by which an AccessLogRecord selects them; give them one", ref.Name)
	}
	return &commonv1.KubeWorkloadMatcher{Labels: k.PodLabels, Namespaces: []string{k.Controller.Namespace}, Clusters: []string{k.Controller.ClusterName}}, nil
}

// create makes the record.
func (o *TapOptions) create(ctx context.Context, records dynamic.ResourceInterface, selector *commonv1.KubeWorkloadMatcher) error {
	o.made = &observabilityv1.AccessLogRecord{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: tapPrefix, Namespace: o.Source.Namespace,
			Annotations: map[string]string{snapshot.LogUntilAnnotation: o.Now().Add(o.For).UTC().Format(time.RFC3339)},
		},
		Spec: observabilityv1.AccessLogRecordSpec{WorkloadSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: selector}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.made)
	if err != nil {
		return fmt.Errorf("AccessLogRecord: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(snapshot.AccessLogRecord.Info().GroupVersionKind)
	unstructured.RemoveNestedField(u.Object, "status")
	created, err := records.Create(ctx, u, metav1.CreateOptions{FieldManager: "meshctl", FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return fmt.Errorf("AccessLogRecord %s/%s…: it cannot be created: %w", o.Source.Namespace, tapPrefix, err)
	}
	o.made.Name, o.made.Namespace = created.GetName(), created.GetNamespace()
	return nil
}

// sweep removes the records of taps that were killed.
func (o *TapOptions) sweep(ctx context.Context, records dynamic.ResourceInterface) error {
	list, err := records.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("AccessLogRecords of namespace %s: %w", o.Source.Namespace, err)
	}
	for i := range list.Items {
		r := &list.Items[i]
		if !snapshot.LogEnded(r, o.Now()) {
			continue
		}
		uid := r.GetUID()
		if err := records.Delete(ctx, r.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			cmdutil.Say(o.Streams, "AccessLogRecord %s/%s of an earlier tap is not removed: %s", r.GetNamespace(), r.GetName(), err)
		}
	}
	return nil
}
