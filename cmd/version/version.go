// Package version is the command `meshctl version`.
package version

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams   *cmdutil.Streams
	Version   cmdutil.Version
	Output    cmdutil.OutputFlag
	Config    func() (*rest.Config, error)
	Context   string
	Namespace string
	// Client: ask no cluster.
	Client bool
	// Timeout bounds the wait for a cluster.
	Timeout time.Duration
}

const long = `Prints the version of meshctl and, if the management cluster answers, what is
installed there: the version of "meshctl serve", the custom resource types, and
whether the accounts of the registered clusters have the permissions that this
version needs. Where versions differ, it says what to do.`

// defaultTimeout is short: this is the first command that many people run.
const defaultTimeout = 3 * time.Second

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Version: f.Version}
	flags := &cmdutil.KubeFlags{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of meshctl and of what is installed",
		Long:  long,
		Example: `  # Print the versions of this meshctl, and of what runs in a cluster
  meshctl version --context cluster-1

  # Print the version of this meshctl only
  meshctl version --client -o json`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Timeout <= 0 {
				return cmdutil.FlagErrorf("--timeout must be greater than 0")
			}
			opts.Config, opts.Context = func() (*rest.Config, error) { return flags.Config(f) }, flags.Context
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return versionRun(cmd.Context(), opts)
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: Answer{}})
	flags.AddFlags(cmd)
	cmd.Flags().StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "how long to wait for an answer of the cluster")
	cmd.Flags().BoolVar(&opts.Client, "client", false, "print the version of this meshctl only")
	return cmd
}

// Answer is what -o json prints. It has the shape of Gloo Mesh's.
type Answer struct {
	// Client is this meshctl.
	Client cmdutil.Version `json:"client"`
	// Server is what is installed in the management cluster; it is missing if that is not known, and with --client.
	Server *registration.InstalledVersions `json:"server,omitempty"`
	// Skew are the next steps where versions differ.
	Skew []string `json:"skew,omitempty"`
}

func versionRun(ctx context.Context, opts *Options) error {
	a := Answer{Client: opts.Version}
	if !opts.Client {
		installed, err := installed(ctx, opts)
		if err != nil {
			// The own version is printed all the same: it is what a report of a problem needs.
			_, _ = fmt.Fprintln(opts.Streams.Err, cmdutil.Clean("What is installed is not known: "+kube.Text(err)))
		} else {
			a.Server = installed
			for _, skew := range installed.Skew(opts.Version.Tag()) {
				a.Skew = append(a.Skew, skew.What+": "+skew.Hint)
			}
		}
	}
	return opts.Output.Print(opts.Streams.Out, a, func(out io.Writer) error { return a.print(out) })
}

func installed(ctx context.Context, opts *Options) (*registration.InstalledVersions, error) {
	config, err := opts.Config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*opts.Timeout)
	defer cancel()
	return registration.Versions(ctx, registration.VersionsOptions{Config: config, Context: opts.Context, Namespace: opts.Namespace, Timeout: opts.Timeout})
}

func (a *Answer) print(out io.Writer) error {
	commit := a.Client.Commit
	if a.Client.Modified {
		commit += " (modified)"
	}
	t := cmdutil.Table{}
	t.Add("Version", a.Client.Version)
	t.Add("Commit", commit)
	t.Add("Go", a.Client.Go)
	t.Add("Platform", a.Client.Platform)
	if s := a.Server; s != nil {
		serve := "not installed in the cluster"
		if s.Served != "" {
			serve += "; one of version " + s.Served + " has run"
		}
		if s.Server != nil {
			serve = fmt.Sprintf("%s, %d of %d replicas are ready", s.Server.Image, s.Server.Ready, s.Server.Replicas)
			if served := cmp.Or(s.Served, s.Server.Version); served != "" && !strings.HasSuffix(s.Server.Image, ":"+served) {
				serve = served + ", " + serve // an image need not say its version
			}
		}
		t.Add("Kubernetes", s.Kubernetes)
		t.Add("Serve", serve)
		t.Add("Types", fmt.Sprintf("%d of this version, %d of another, %d missing", s.Types.Current, len(s.Types.Other), len(s.Types.Missing)))
		current := 0
		for _, c := range s.Clusters {
			if c.Current {
				current++
			}
		}
		t.Add("Clusters", fmt.Sprintf("%d registered, %d with the permissions of this version", len(s.Clusters), current))
	}
	for _, step := range a.Skew {
		t.Add("Skew", step)
	}
	if err := t.Print(out); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	return nil
}
