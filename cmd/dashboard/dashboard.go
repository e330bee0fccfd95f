// Package dashboard is the command `meshctl dashboard`: all clusters and meshes
// on one screen.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/tui"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	// Dir is a folder as for translate; empty means the management cluster.
	Dir       string
	Kube      cmdutil.KubeFlags
	Namespace string
	// Server is the URL of the metrics of meshctl serve; empty finds it.
	Server string
	// Write lets objects be edited and deleted.
	Write bool
	// Theme is auto, dark, light or none.
	Theme string

	factory *cmdutil.Factory
	// source replaces the one that Dir or Kube name, in tests.
	source tui.Source
}

const long = `Shows clusters, meshes, destinations, workloads, virtual meshes, policies, and
everything that is wrong, on one screen.

It watches the management cluster and, with the credentials that are stored
there, every registered one. An edit shows at once, and so does a cluster that
stops answering; what was known of it stays on the screen. Without permission to
read those credentials it shows what was discovered. With a folder as for
"meshctl translate" it shows what the manifests would result in, and with a file
of "meshctl debug snapshot" what was recorded; neither needs a cluster.

It is read-only unless started with --write: then "e" opens a policy in your
editor and "ctrl-d" deletes it. Before anything is written, the API server
validates it, and the screen shows what it would do and asks. "space" marks a
row, and "m" all rows from the nearest mark to the cursor, or all that are shown
if none is marked: then "ctrl-d" deletes all marked objects, after one review of
what that does together, and "y" and "c" are for all of them. "esc" clears the
marks. Where nothing can be changed, "space" is a page down.

Keys are those of k9s: ":" goes to a page or an object, "/" filters, "enter"
opens, "y" shows the YAML and what was generated from it, "a" asks what becomes
of a request (":why FROM TO METHOD PATH"), "ctrl-z" keeps only problems, "?"
lists all keys, "q" quits. The header shows which serve leads.

What requests do is shown beside what policies ask for, where "meshctl top" has
numbers: in the lists of services and workloads, in the details, and as edges.

Small terminals show fewer columns; 80x20 and more show all. From 160 columns
on, all about the row under the cursor stands beside the list: "d" goes there,
"esc" back, and "w" shows all columns of the list instead. Colours are the
terminal's own sixteen; NO_COLOR, or --theme none, leaves them out.`

const example = `  # Show what the management cluster of the current context manages
  meshctl dashboard

  # Show what manifests would result in; saving a file updates the screen
  meshctl dashboard --dir ./manifests`

// themes are the values of --theme.
func themes() []string { return []string{"auto", "dark", "light", "none"} }

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, factory: f}
	cmd := &cobra.Command{
		Use:     "dashboard",
		Aliases: []string{"ui"},
		Short:   "See all clusters, meshes and policies on one screen",
		Long:    long,
		Example: example,
		Args:    cmdutil.Args("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmdutil.FolderArgument(args, &opts.Dir); err != nil {
				return err
			}
			for _, flag := range []string{"kubeconfig", "context", "namespace"} {
				if opts.Dir != "" && cmd.Flags().Changed(flag) {
					return cmdutil.FlagErrorf("--%s names a cluster, and %s is a folder; leave one of them out", flag, opts.Dir)
				}
			}
			if opts.Dir != "" && opts.Write {
				return cmdutil.FlagErrorf("--write changes a cluster, and %s is a folder; edit its files, and the screen follows", opts.Dir)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	cmd.Flags().BoolVar(&opts.Write, "write", false, "allow policies to be edited and deleted")
	cmd.Flags().StringVar(&opts.Theme, "theme", "auto", "colour `theme`, by the background of the terminal: "+strings.Join(themes(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("theme", cobra.FixedCompletions(themes(), cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddFileFlags(cmd, &opts.Dir)
	opts.Kube.AddFlags(cmd)
	cmdutil.AddServerFlag(cmd, &opts.Server)
	cmd.MarkFlagsMutuallyExclusive("server", "dir")
	cmd.MarkFlagsMutuallyExclusive("server", "snapshot")
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	background, err := shadeOf(opts.Theme, opts.Streams.Colour, os.Getenv("COLORFGBG"))
	if err != nil {
		return err
	}
	if !opts.Streams.InTTY || !opts.Streams.OutTTY {
		return cmdutil.FlagErrorf("the dashboard needs a terminal; for scripts and pipes use: %s", describeInstead(opts.Dir))
	}
	if os.Getenv("TERM") == "dumb" {
		return cmdutil.FlagErrorf("the terminal cannot move its cursor (TERM=dumb); use: %s", describeInstead(opts.Dir))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Logs of client-go would be written over the screen.
	klog.SetLogger(logr.Discard())
	source := opts.source
	if source == nil {
		if source, err = newSource(ctx, opts); err != nil {
			return err
		}
	}
	model := tui.New(ctx, source, tui.NewTheme(background), opts.factory.Now())
	// Signals come in by ctx, as for every command; ctrl-c is a key here.
	guarded := &guard{Model: model}
	program := tea.NewProgram(guarded, tea.WithContext(ctx), tea.WithoutSignalHandler(),
		tea.WithInput(opts.Streams.In), tea.WithOutput(opts.Streams.Out))
	_, err = program.Run()
	const bug = "the dashboard failed; this is a bug in meshctl; please report the output above"
	switch {
	case guarded.broken != nil:
		_, _ = fmt.Fprintln(opts.Streams.Err, cmdutil.CleanLines(fmt.Sprintf("%s\n\n%s", guarded.broken, guarded.broken.Stack)))
		return errors.New(bug)
	case errors.Is(model.Err(), tui.ErrInterrupted):
		return context.Canceled
	case model.Err() != nil:
		return model.Err()
	case errors.Is(err, tea.ErrProgramPanic):
		// Bubble Tea has given the terminal back and shown the panic.
		return errors.New(bug)
	}
	return err
}

// describeInstead is the command for those without a terminal.
func describeInstead(dir string) string {
	if dir == "" {
		return "meshctl describe"
	}
	return "meshctl describe destinations --dir " + quote(dir)
}

// shadeOf is the background to paint for. COLORFGBG, which many terminals set,
// ends in the number of the background's colour.
func shadeOf(theme string, colour bool, colorFGBG string) (tui.Background, error) {
	switch theme {
	case "dark", "light", "none":
		return tui.Background(theme), nil
	case "auto", "":
	default:
		return "", cmdutil.FlagErrorf("--theme %q: must be one of %s", theme, strings.Join(themes(), ", "))
	}
	if !colour {
		return tui.NoColour, nil
	}
	switch background := colorFGBG[strings.LastIndexByte(colorFGBG, ';')+1:]; background {
	case "7", "15":
		return tui.Light, nil
	}
	return tui.Dark, nil
}

func newSource(ctx context.Context, opts *Options) (tui.Source, error) {
	if opts.Dir != "" {
		return newFolder(opts.Dir, opts.factory.Now)
	}
	l, err := newLive(ctx, opts)
	if err != nil || !opts.Write {
		return l, err
	}
	return newWritable(ctx, l)
}

// quote makes a word safe to paste into a shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@:=+-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
