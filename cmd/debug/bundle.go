package debug

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	checkcmd "github.com/meshctl/meshctl/cmd/check"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/bundle"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// BundleOptions are those of meshctl debug bundle.
type BundleOptions struct {
	Streams *cmdutil.Streams
	Source  cmdutil.Source
	// File is the archive; a folder if it is one or ends with a slash.
	File string
	// MaxSize bounds it, in MiB.
	MaxSize int64
	// Lines and Since bound the logs.
	Lines int64
	Since time.Duration
	// Timeout bounds each request.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
}

const bundleLong = `Collects in one file what helps to find out what went wrong: a snapshot as by
"meshctl debug snapshot", what "meshctl check" says, versions, and the states,
events, Leases and logs of the pods of meshctl in all clusters. Pods in
registered clusters are read with the contexts of your kubeconfig that lead
there.

Every command with --snapshot opens the file. The rest is in its folder
.support; collected.yaml there lists it, and what could not be collected.

It has no Secrets, no environment variables and no annotations of pods. Private
keys, tokens, credentials in headers and URLs, and values of fields that are
named like secrets are taken out of all texts. A secret that looks like any
other word cannot be known: look into the logs before you pass the file on.`

func newCmdBundle(f *cmdutil.Factory, runF func(context.Context, *BundleOptions) error) *cobra.Command {
	opts := &BundleOptions{Streams: f.Streams, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Collect what helps to find out what went wrong",
		Long:  bundleLong,
		Example: `  # Collect everything, with the logs of the last two hours
  meshctl debug bundle -o bundle.zip --since 2h

  # Look at it elsewhere
  meshctl dashboard --snapshot bundle.zip`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case opts.MaxSize <= 0:
				return cmdutil.FlagErrorf("--max-size must be greater than 0")
			case opts.Lines <= 0:
				return cmdutil.FlagErrorf("--tail must be greater than 0")
			case opts.Since < 0:
				return cmdutil.FlagErrorf("--since must not be negative")
			case opts.Timeout <= 0:
				return cmdutil.FlagErrorf("--timeout must be greater than 0")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return bundleRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVarP(&opts.File, "output", "o", "", "`file` to write, or folder if it is one or ends with a slash (default: meshctl-bundle-DATE-TIME.zip)")
	flags.Int64Var(&opts.MaxSize, "max-size", 50, "most that it may have, in `MiB`")
	flags.Int64Var(&opts.Lines, "tail", 5000, "most `lines` of the log of each container")
	flags.DurationVar(&opts.Since, "since", 0, "only logs of this last `time` (default: all)")
	flags.DurationVar(&opts.Timeout, "timeout", 20*time.Second, "how long to wait for each answer of a cluster")
	opts.Source.AddClusterFlags(cmd)
	_ = cmd.MarkFlagFilename("output", "zip")
	return cmd
}

// maxLog bounds the log of each container, in bytes.
const maxLog = 4 << 20

func bundleRun(ctx context.Context, o *BundleOptions) error {
	now := o.Now()
	if o.File == "" {
		o.File = "meshctl-bundle-" + now.Format("20060102-150405") + ".zip"
	}
	target, err := openTarget(o.File) // a mistake in its name first
	if err != nil {
		return fmt.Errorf("write to %s: %w", o.File, err)
	}
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	read, err := o.Source.ReadAll(ctx, o.Streams)
	if err != nil {
		return err
	}
	files, room, err := o.snapshot(read, now)
	if err != nil {
		return err
	}
	b := bundle.New(now, room)
	if files == nil {
		b.Miss("the snapshot", "", fmt.Sprintf("it alone has more than %d MiB; allow more with --max-size", o.MaxSize))
		files = map[string][]byte{}
	}
	o.collect(ctx, b, management, read)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	maps.Copy(files, b.Files)
	if files[path.Join(bundle.Folder, "collected.yaml")], err = snapshot.YAML(b.Index); err != nil {
		return fmt.Errorf("collected.yaml: %w", err)
	}
	files["README.txt"] = []byte(readme)
	size, err := target.write(files)
	if err != nil {
		return fmt.Errorf("write to %s: %w", o.File, err)
	}
	o.tell(b, size)
	return nil
}

// readme is for who opens the archive without meshctl.
const readme = `What "meshctl debug bundle" has collected.

  management/, CLUSTER/   what was read: look at it with
                          meshctl dashboard --snapshot FILE
  .outputs/               what followed from it
  .support/               versions, checks, states, events and logs;
                          collected.yaml lists it, and what is missing
`

// snapshot gives the files of the snapshot, and how much room they leave; nil if they are too large.
func (o *BundleOptions) snapshot(read *reading.Reading, now time.Time) (files map[string][]byte, room int64, err error) {
	room = o.MaxSize << 20
	recorded := &offline.Snapshot{Input: read.Input, Recorded: now, Served: read.Served}
	if files, err = offline.Save(recorded, engine.Translate(read.Input).Output); err != nil {
		return nil, 0, err
	}
	var size counter
	if err := offline.WriteArchive(&size, files); err != nil {
		return nil, 0, err
	}
	if int64(size) > room {
		return nil, room, nil
	}
	return files, room - int64(size), nil
}

// counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// collect adds what is beside the snapshot.
func (o *BundleOptions) collect(ctx context.Context, b *bundle.Bundle, management reading.Management, read *reading.Reading) {
	progress := cmdutil.NewProgress(o.Streams)
	version := o.Source.Factory.Version
	b.AddYAML("versions.yaml", map[string]any{
		"meshctl": version.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "serve": read.Input.Management.Server(),
	})
	progress.Start("Checking")
	checkup, err := checkcmd.Checkup(ctx, management, check.Options{
		Config: management.Config, Context: o.Source.Kube.Context, Namespace: o.Source.Namespace, Version: version.Tag(),
		UserAgent: management.Config.UserAgent, Timeout: registration.DefaultCheckTimeout, Detours: management.Detours,
	})
	if err != nil {
		b.Miss("what meshctl check says", "", kube.Text(err))
	} else {
		b.AddJSON("check.json", checkup)
	}
	progress.Start("Reading the pods of the management cluster")
	limits := bundle.Limits{Lines: o.Lines, Bytes: maxLog, Since: o.Since, Timeout: o.Timeout}
	if client, err := kube.NewClientset(kube.Unlimited(management.Config)); err != nil {
		b.Miss("the pods", "", kube.Text(err))
	} else {
		b.AddCluster(ctx, &bundle.Cluster{Name: bundle.Management, Client: client, Namespace: o.Source.Namespace}, limits)
	}
	for _, c := range read.Input.Management.KubernetesClusters {
		if ctx.Err() != nil {
			break
		}
		progress.Start("Reading the pods of cluster " + c.Name)
		o.cluster(ctx, b, management, c, limits)
	}
	for _, c := range read.Input.Clusters {
		if c.Frozen() {
			b.Miss("the objects of the cluster as they are now", c.Name, c.Reason)
		}
	}
	progress.End(ctx.Err())
}

// cluster reads a registered cluster with the user's own context.
func (o *BundleOptions) cluster(ctx context.Context, b *bundle.Bundle, management reading.Management, of *multiclusterv1alpha1.KubernetesCluster, limits bundle.Limits) {
	name := of.Name
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	contexts := management.Detours.Contexts(limited, types.UID(of.Annotations[cluster.UIDAnnotation]))
	if len(contexts) == 0 {
		b.Miss("the pods of meshctl and their logs", name, "no context of your kubeconfig leads there; add one, or name another file with --kubeconfig")
		return
	}
	found := contexts[0]
	if i := slices.IndexFunc(contexts, func(c registration.Context) bool { return c.Name == name }); i >= 0 {
		found = contexts[i]
	}
	client, err := kube.NewClientset(kube.Unlimited(found.Config))
	if err != nil {
		b.Miss("the pods of meshctl and their logs", name, kube.Text(err))
		return
	}
	b.AddCluster(ctx, &bundle.Cluster{Name: name, Client: client, Namespace: of.Status.Namespace}, limits)
}

// maxMissing bounds what tell names of what is missing.
const maxMissing = 5

func (o *BundleOptions) tell(b *bundle.Bundle, size int64) {
	for i, m := range b.Index.Missing {
		if i == maxMissing {
			cmdutil.Say(o.Streams, "Note: %d more could not be collected; collected.yaml lists them.", len(b.Index.Missing)-i)
			break
		}
		where := ""
		if m.Cluster != "" {
			where = " of cluster " + m.Cluster
		}
		cmdutil.Say(o.Streams, "Note: not collected: %s%s: %s.", m.What, where, m.Why)
	}
	cmdutil.Say(o.Streams, "Collected %s in %s (%d kB). Look into the logs before you pass it on. Open it with: meshctl dashboard --snapshot %s",
		snapshot.Count(len(b.Index.Files), "file"), o.File, (size+1023)/1024, o.File)
}

// target is where a bundle is written: an archive, or a folder.
type target struct {
	file string
	root *os.Root // of a folder
}

// openTarget makes the folder, if it is one, or looks whether a file can be written there.
func openTarget(name string) (*target, error) {
	info, err := os.Stat(name)
	isDir := err == nil && info.IsDir()
	if !isDir && !strings.HasSuffix(name, "/") {
		parent, err := os.Stat(filepath.Dir(name))
		if err == nil && !parent.IsDir() {
			err = fmt.Errorf("%s is no folder", filepath.Dir(name))
		}
		return &target{file: name}, err
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(name)
	if err == nil && len(entries) > 0 {
		err = errors.New("the folder is not empty; name another one")
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(name)
	return &target{file: name, root: root}, err
}

func (t *target) write(files map[string][]byte) (size int64, err error) {
	if t.root == nil {
		return write(t.file, files)
	}
	defer func() { _ = t.root.Close() }()
	for name, data := range files {
		if err := t.root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return 0, err
		}
		if err := t.root.WriteFile(name, data, 0o600); err != nil {
			return 0, err
		}
		size += int64(len(data))
	}
	return size, nil
}
