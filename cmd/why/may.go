package why

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// MayOptions are those of `meshctl why may`.
type MayOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	Subject rbac.Subject
	Verb    rbac.Verb
	// Kind and Name are those of a stored object; the zero Kind for those in File.
	Kind snapshot.Kind
	Name string
	// File has the manifests; - is standard input.
	File string
}

// May is what Roles say.
type May struct {
	Subject string    `json:"subject"`
	Verb    rbac.Verb `json:"verb"`
	// Exempt says why Roles do not limit the subject; empty if they do.
	Exempt  string      `json:"exempt,omitempty"`
	Objects []MayObject `json:"objects"`
}

// MayObject is what Roles say about one object.
type MayObject struct {
	Object snapshot.Ref `json:"object"`
	rbac.Verdict
}

// allowed reports whether all of it is allowed.
func (m *May) allowed() bool {
	return m.Exempt != "" || !slices.ContainsFunc(m.Objects, func(o MayObject) bool { return !o.Allowed })
}

const mayLong = `Says whether Roles let somebody write an object, by which Role, or what the
nearest scope lacks. Roles are enforced where "meshctl serve" runs with --roles
enforce; see "meshctl help roles". What Kubernetes allows is another question:
for that, there is "kubectl auth can-i".

USER is a user name, system:serviceaccount:NAMESPACE:NAME for a ServiceAccount.
VERB is create, update or delete. The object is a stored one, as KIND/NAME in
the namespace of the management plane or of --in, or those in -f. Who updates
needs the right on the object as it is stored and as it becomes.`

const mayExample = `  # May ada apply these policies?
  meshctl why may ada create -f policies.yaml

  # May a pipeline delete one?
  meshctl why may system:serviceaccount:ci:deployer delete accesspolicy/ratings

  # The same for a member of a group
  meshctl why may ada update trafficpolicy/reviews-shift --group operators`

// newMayCmd returns the command; runF replaces the run in tests.
func newMayCmd(f *cmdutil.Factory, runF func(context.Context, *MayOptions) error) *cobra.Command {
	opts := &MayOptions{Streams: f.Streams}
	opts.Source.Factory = f
	namespace := ""
	cmd := &cobra.Command{
		Use:   "may USER VERB [KIND/NAME]",
		Short: "Say whether Roles let somebody write an object",
		Long:  mayLong, Example: mayExample,
		Args: cmdutil.Args("USER", "VERB", "[KIND/NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.complete(args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return mayRun(cmd.Context(), opts, namespace)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{string(rbac.Create), string(rbac.Update), string(rbac.Delete)}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: May{}})
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "Roles do not allow all of it"})
	opts.Source.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&opts.Subject.Groups, "group", nil, "a `group` of the user; may be repeated")
	cmd.Flags().StringVarP(&opts.File, "filename", "f", "", "`file` of manifests, or -")
	cmd.Flags().StringVar(&namespace, "in", "", "`namespace` of the stored object (default: that of the management plane)")
	_ = cmd.RegisterFlagCompletionFunc("group", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("in", cobra.NoFileCompletions)
	return cmd
}

// complete reads the arguments.
func (o *MayOptions) complete(args []string) error {
	o.Subject.User = args[0]
	o.Verb = rbac.Verb(strings.ToLower(args[1]))
	if !slices.Contains(rbac.Verbs(), o.Verb) {
		return cmdutil.FlagErrorf("VERB %q: want create, update or delete", args[1])
	}
	o.Subject.Groups = append(o.Subject.Groups, implied(o.Subject.User)...)
	switch {
	case len(args) == 2 && o.File == "":
		return cmdutil.FlagErrorf("name a stored object as KIND/NAME, or manifests with -f")
	case len(args) == 3 && o.File != "":
		return cmdutil.FlagErrorf("KIND/NAME and -f exclude each other; leave one of them out")
	case len(args) == 2:
		return nil
	case o.Verb == rbac.Create:
		return cmdutil.FlagErrorf("what is to be created is not stored yet; give its manifest with -f")
	}
	kind, name, _ := strings.Cut(args[2], "/")
	for _, k := range rbac.Kinds() {
		if strings.EqualFold(kind, k.String()) || strings.EqualFold(kind, k.Info().Resource) {
			o.Kind, o.Name = k, name
		}
	}
	if o.Name == "" {
		names := make([]string, 0, len(rbac.Kinds()))
		for _, k := range rbac.Kinds() {
			names = append(names, strings.ToLower(k.String()))
		}
		return cmdutil.FlagErrorf("%q: want KIND/NAME, with one of these kinds: %s", args[2], strings.Join(names, ", "))
	}
	return nil
}

// implied are the groups that an API server adds by itself (kubernetes.io: Authenticating).
func implied(user string) []string {
	out := []string{"system:authenticated"}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		out = append(out, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return out
}

func mayRun(ctx context.Context, o *MayOptions, namespace string) error {
	var manifests []offline.Manifest
	if o.File != "" {
		var err error
		if manifests, err = o.read(); err != nil {
			return err
		}
	}
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return err
	}
	m := read.Input.Management
	rules := rbac.New(m.Namespace, m.Roles, m.RoleBindings)
	out := &May{Subject: o.Subject.String(), Verb: o.Verb, Exempt: rbac.Exempt(o.Subject, m.Namespace, webhook.Account), Objects: []MayObject{}}
	if o.File == "" {
		if namespace == "" {
			namespace = m.Namespace
		}
		ref := snapshot.Ref{Kind: o.Kind, Namespace: namespace, Name: o.Name}
		stored := read.Input.Find(ref)
		if stored == nil {
			return cmdutil.NotFoundErrorf("%s does not exist; list what there is with meshctl describe", ref)
		}
		out.Objects = append(out.Objects, MayObject{ref, rules.Allowed(o.Subject, o.Verb, stored, stored)})
	}
	for i := range manifests {
		ref := manifests[i].Ref
		stored := read.Input.Find(ref)
		if stored == nil && o.Verb != rbac.Create {
			return cmdutil.NotFoundErrorf("%s does not exist, so nobody can %s it", ref, o.Verb)
		}
		out.Objects = append(out.Objects, MayObject{ref, rules.Allowed(o.Subject, o.Verb, manifests[i].Object, stored)})
	}
	if err := o.Output.Print(o.Streams.Out, out, func(w io.Writer) error { return paintMay(w, out) }); err != nil {
		return err
	}
	if !out.allowed() {
		return cmdutil.WithCode(cmdutil.ExitFindings, cmdutil.ErrFindings)
	}
	return nil
}

// read reads the manifests about which Roles decide.
func (o *MayOptions) read() ([]offline.Manifest, error) {
	var data []byte
	var err error
	name := o.File
	if name == "-" {
		name = "standard input"
		data, err = offline.ReadAll(o.Streams.In)
	} else {
		data, err = offline.ReadFile(name)
	}
	if err != nil {
		return nil, cmdutil.NotFoundErrorf("%s cannot be read: %w", name, err)
	}
	list, _, err := offline.Manifests(name, data)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(m offline.Manifest) bool { return !rbac.Governs(m.Ref.Kind) })
	if len(list) == 0 {
		return nil, cmdutil.NotFoundErrorf("%s: no manifest of a kind that Roles are about, such as TrafficPolicy", name)
	}
	return list, nil
}

func paintMay(w io.Writer, m *May) error {
	if m.Exempt != "" {
		_, err := fmt.Fprintf(w, "ALLOWED  %s: %s\n", m.Subject, m.Exempt)
		return err
	}
	for _, o := range m.Objects {
		word := "DENIED "
		if o.Allowed {
			word = "ALLOWED"
		}
		if _, err := fmt.Fprintf(w, "%s  %s may %s %s: %s\n", word, m.Subject, may(o.Allowed, m.Verb), strings.TrimSpace(o.Object.String()), o.Verdict.Text()); err != nil {
			return err
		}
	}
	return nil
}

func may(allowed bool, verb rbac.Verb) string {
	if allowed {
		return string(verb)
	}
	return "not " + string(verb)
}
