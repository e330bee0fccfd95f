// Package backup has the commands `meshctl backup` and `meshctl restore`: the state of a management plane in a file, and the same management
// plane made of it in another cluster.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/certs/roots"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams   *cmdutil.Streams
	Kube      cmdutil.KubeFlags
	Namespace string
	// File to write; - is standard output.
	File    string
	Secrets bool
	Now     func() time.Time

	factory *cmdutil.Factory
}

const long = `Writes the state of the management plane to a file, from which
"meshctl restore" makes the same management plane in another cluster:

  what users wrote, with statuses: policies, VirtualMeshes, Settings, Roles,
  registrations; of policies in all namespaces
  what was discovered, with the last good specs of policies
  what meshctl keeps in its own namespace: its identity, by which it knows
  its objects in the clusters, what may be trusted, recorded changes, what
  deregistered clusters still have

Secrets are in it only with --with-secrets: credentials of clusters, private
keys of roots, what is known of agents. Whoever has such a file can write to
all clusters, so keep it as you keep these keys; the file can be read by you
only, and "-" prints it for a program that encrypts it. Without Secrets, the
clusters have to be registered again after "meshctl restore", which says how,
and a VirtualMesh whose root was generated gets another one.

It reads only, and serve goes on. What users have made in other namespaces
for their own ends, and what "meshctl install" makes, is not in it.`

// NewCmd returns the command `meshctl backup`; runF replaces its run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, factory: f}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the state of the management plane to a file",
		Long:  long,
		Example: `  # Everything that a new management cluster needs, once a day
  meshctl backup meshctl.backup --with-secrets

  # Without credentials and private keys
  meshctl backup meshctl.backup

  # To a program that encrypts it: | PROGRAM > FILE
  meshctl backup - --with-secrets`,
		Args: cmdutil.Args("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.File = args[0]; opts.File == stdio && opts.Streams.OutTTY {
				return cmdutil.FlagErrorf("a backup is not for a terminal; name a file, or a program with: %s - | PROGRAM", cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.Kube.AddFlags(cmd)
	cmd.Flags().StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	cmd.Flags().BoolVar(&opts.Secrets, "with-secrets", false, "put credentials and private keys into the file")
	return cmd
}

// stdio is the file that stands for standard input and output.
const stdio = "-"

func run(ctx context.Context, o *Options) error {
	if _, err := os.Lstat(o.File); err == nil && o.File != stdio {
		return fmt.Errorf("%s exists, and a backup replaces no file; name another file, or remove it", o.File)
	}
	config, err := o.Kube.Config(o.factory)
	if err != nil {
		return err
	}
	taken, err := registration.TakeBackup(ctx, registration.BackupOptions{
		Config: config, Context: o.Kube.Context, Namespace: o.Namespace, Secrets: o.Secrets, Keyless: roots.Keyless, Version: o.factory.Version.Version, Now: o.Now(),
	})
	if err != nil {
		return typed(err)
	}
	what := fmt.Sprintf("%s of namespace %s of %s", snapshot.Count(len(taken.Objects), "object"), o.Namespace, config.Host)
	if o.File == stdio {
		if err := taken.Write(o.Streams.Out); err != nil {
			return err
		}
		cmdutil.Say(o.Streams, "Backed up %s.", what)
	} else {
		size, err := cmdutil.WriteFile(o.File, taken.Write)
		if err != nil {
			return fmt.Errorf("write to %s: %w", o.File, err)
		}
		cmdutil.Say(o.Streams, "Backed up %s to %s (%d kB). Make the same management plane of it in another cluster with: meshctl restore %[2]s", what, o.File, (size+1023)/1024)
	}
	switch {
	case len(taken.LeftOut) > 0:
		cmdutil.Say(o.Streams, "Note: %s with credentials or private keys are not in it; with --with-secrets they are.", snapshot.Count(len(taken.LeftOut), "Secret"))
	case o.Secrets:
		cmdutil.Say(o.Streams, "Note: it has credentials and private keys; whoever can read it can write to the clusters.")
	}
	return nil
}

// typed gives errors the types that become exit codes.
func typed(err error) error {
	var (
		unreachable *registration.UnreachableError
		none        *registration.NoPlaneError
	)
	switch {
	case errors.As(err, &unreachable):
		return &cmdutil.UnreachableError{Err: err}
	case errors.As(err, &none), errors.Is(err, os.ErrNotExist):
		return &cmdutil.NotFoundError{Err: err}
	}
	return err
}

// read reads a backup.
func read(s *cmdutil.Streams, file string) (*registration.Backup, error) {
	var from io.Reader = s.In
	if file != stdio {
		opened, err := os.Open(file)
		if err != nil {
			return nil, typed(fmt.Errorf("%s cannot be read (%w); name a file that `meshctl backup` wrote", file, err))
		}
		defer func() { _ = opened.Close() }()
		from = opened
	} else {
		file = "standard input"
	}
	b, err := registration.ReadBackup(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}
