// Package export is the command `meshctl export`: what users wrote in a management cluster, as manifests for Git.
package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// To is the folder to write; empty prints the manifests.
	To string
}

const long = `Prints what users wrote in the management cluster, as manifests that "kubectl
apply" and Git take: TrafficPolicies, AccessPolicies, VirtualMeshes,
VirtualDestinations, ServiceDependencies, Settings, Roles, KubernetesClusters,
and Destinations outside of the clusters. It leaves out what servers note in
objects: statuses, managed fields, UIDs, versions; and annotations by which
"meshctl trust" and "meshctl cluster" ask for something once. The same objects
give the same bytes.

With FOLDER, each object gets a file KIND/NAMESPACE/NAME.yaml there, beside a
kustomization.yaml which lists them. The next run replaces these files, removes
those of objects that are gone, and leaves other files alone.

It has no credentials: a KubernetesCluster names the Secret of its cluster, and
does not have it. Neither has it the age of objects, by which the older one of
two policies in conflict applies: in another cluster, names decide. To move the
management plane to another cluster, use "meshctl backup".`

const example = `  # Print everything
  meshctl export > fleet.yaml

  # Put it into a folder, for Git
  meshctl export ./fleet

  # Say what applying it would change
  meshctl plan -f ./fleet`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "export [FOLDER]",
		// What other programs call it.
		SuggestFor: []string{"dump"},
		Short:      "Print what users wrote as manifests for Git",
		Long:       long,
		Example:    example,
		Args:       cmdutil.Args("[FOLDER]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.To = args[0]
				if cmd.Flags().Changed("output") {
					return cmdutil.FlagErrorf("--output is for what is printed, and FOLDER for files; leave one of them out")
				}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatYAML, cmdutil.FormatJSON)
	opts.Output.Prints(cmdutil.Form{Value: cmdutil.Manifest{}})
	opts.Source.AddFlags(cmd)
	return cmd
}

func run(ctx context.Context, o *Options) error {
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return err
	}
	if err := complete(read.Input); err != nil {
		return err
	}
	objects, err := offline.Export(read.Input.Management)
	if err != nil {
		return err
	}
	if o.To == "" {
		err = o.print(objects)
	} else {
		err = write(o.To, objects)
	}
	if err != nil {
		return err
	}
	o.tell(objects, read)
	return nil
}

// complete fails if not all objects could be read: the files of the others would be removed.
func complete(in *snapshot.Input) error {
	for _, f := range in.Failures {
		if f.Code == snapshot.ObjectUnreadable && f.Ref.Cluster == "" {
			return fmt.Errorf("%s: it cannot be exported: %s; correct or delete it, and export again", f.Ref, f.What)
		}
	}
	return nil
}

// print prints all objects: as documents of YAML, or as a List in JSON.
func (o *Options) print(objects []offline.Exported) error {
	items := make([]any, len(objects))
	for i := range objects {
		items[i] = objects[i].Manifest
	}
	if o.Output.Format == cmdutil.FormatJSON {
		list := cmdutil.Manifest{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
		return o.Output.Print(o.Streams.Out, list, nil)
	}
	for i := range objects {
		data, err := objects[i].YAML()
		if err != nil {
			return err
		}
		if _, err := io.WriteString(o.Streams.Out, "---\n"+string(data)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// kustomization is the file that lists the others.
const kustomization = "kustomization.yaml"

// write writes a file for each object.
func write(dir string, objects []offline.Exported) error {
	files := map[string][]byte{}
	var names []string
	for i := range objects {
		data, err := objects[i].YAML()
		if err != nil {
			return err
		}
		name := objects[i].File()
		if files[name] != nil {
			return fmt.Errorf("%s: another object has the file %s; rename one of the two", objects[i].Ref, name)
		}
		files[name], names = data, append(names, name)
	}
	slices.Sort(names)
	data, err := snapshot.YAML(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": append([]string{}, names...)})
	if err != nil {
		return fmt.Errorf("%s: %w", kustomization, err)
	}
	files[kustomization] = data
	return cmdutil.WriteFolder(dir, "export", files)
}

// tell says how much it was, and what is not in it.
func (o *Options) tell(objects []offline.Exported, read *reading.Reading) {
	clusters := 0
	for i := range objects {
		if objects[i].Ref.Kind == snapshot.KubernetesCluster {
			clusters++
		}
	}
	if o.To != "" {
		cmdutil.Say(o.Streams, "Exported %s to %s. Say what applying them would change with: meshctl plan -f %s", snapshot.Count(len(objects), "object"), o.To, o.To)
	}
	if clusters > 0 {
		cmdutil.Say(o.Streams, "Note: the credentials of %s are not in it; in another management cluster, register them again.", snapshot.Count(clusters, "cluster"))
	}
	if younger := inConflict(read); len(younger) > 0 {
		cmdutil.Say(o.Streams, "Note: of objects in conflict, the older one applies, and ages are not in it; solve the conflicts before you apply it to another cluster: %s.", strings.Join(younger, ", "))
	}
}

// maxNamed bounds the objects that a note names.
const maxNamed = 5

// inConflict names the objects that lose against an older one.
func inConflict(read *reading.Reading) (names []string) {
	for _, issue := range read.Index(nil).Issues() {
		switch issue.Code {
		case snapshot.FieldConflict, snapshot.MeshClaimed, snapshot.HostnameTaken:
			if name := issue.Ref.String(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return names
}
