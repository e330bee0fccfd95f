package create

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

func createRun(ctx context.Context, opts *Options) error {
	opts.Namespace = cmp.Or(opts.Namespace, opts.MgmtNamespace)
	if err := opts.Begin(ctx); err != nil {
		return err
	}
	if err := opts.complete(); err != nil {
		return err
	}
	in, err := opts.Input(ctx)
	if err != nil {
		return err
	}
	command, err := opts.Run(ctx, in)
	if err != nil && opts.Asks {
		opts.SaveAnswers()
	}
	if err != nil {
		return interview.ExitError(err)
	}
	if command != nil {
		opts.Say("Equivalent command:\n\n  %s\n", wizards.Quote(command))
	}
	return opts.Finding
}

// Begin loads saved answers, if the flags name some, and finds out whether there is somebody to ask.
func (o *Options) Begin(ctx context.Context) error {
	if o.Flags.Recover != "" {
		if err := o.LoadAnswers(); err != nil {
			return err
		}
	}
	o.Asks = o.Prompter != nil || interview.CanAsk(o.Streams)
	if o.Asks && o.Prompter == nil {
		o.Prompter = o.Flags.Prompter(ctx, o.Streams)
	}
	return nil
}

// Run asks for what the answers leave out, and applies, saves or prints the
// manifest. It returns the command that does the same without questions; nil if
// the manifest was only printed. Answers, Name and Namespace have what was
// answered, also after an error.
func (o *Options) Run(ctx context.Context, in *snapshot.Input) ([]string, error) {
	if o.Checker == nil {
		o.Checker = admission.NewChecker()
	}
	catalog := wizards.NewCatalog(in, o.Now())
	if o.AllMeshes {
		unjoined, _ := catalog.UnjoinedMeshes()
		if len(unjoined) == 0 {
			return nil, cmdutil.NotFoundErrorf("VirtualMesh %s/%s: every mesh is in a VirtualMesh already, or none was discovered; to see them: meshctl describe mesh", o.Namespace, o.Name)
		}
		o.Answers[meshFlag] = unjoined
	}
	if err := FullNames(catalog, o.Form, o.Answers); err != nil {
		return nil, err
	}
	s := &wizards.Session{
		Prompter: o.Prompter, Form: o.Form, Catalog: catalog, Checker: o.Checker,
		Namespace: o.Namespace, Name: o.Name, Answers: o.Answers, Leave: o.Leave, Within: o.Within,
	}
	out, err := o.outcome(s)
	o.Name, o.Namespace, o.Answers = s.Name, s.Namespace, s.Answers
	if err != nil {
		return nil, err
	}
	return o.execute(ctx, s, out)
}

// Decided reports whether the flags say what to do with the manifest.
func (o *Options) Decided() bool { return o.Apply || o.DryRun || o.Save != "" }

// Say writes to the error stream.
func (o *Options) Say(format string, args ...any) { _, _ = fmt.Fprintf(o.Streams.Err, format, args...) }

// complete rejects missing settings, unless there is a terminal to ask on.
func (o *Options) complete() error {
	if o.Asks {
		return nil
	}
	var missing []string
	if o.Name == "" {
		missing = append(missing, "a name: "+o.command+" NAME")
	}
	if flags := o.Form.Missing(o.Answers); flags != "" && !o.AllMeshes {
		missing = append(missing, flags)
	}
	if !o.Decided() {
		missing = append(missing, Undecided)
	}
	return o.MissingError(missing)
}

// Undecided is what is missing where the flags do not say what to do with the manifest.
const Undecided = "what to do with it: --apply, --save FILE or --dry-run"

// MissingError says which settings are required and missing; nil if there are none.
func (o *Options) MissingError(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	nobody := ", and there is no terminal to ask for them"
	if o.Asks {
		nobody = ""
	}
	return cmdutil.FlagErrorf("required settings are missing%s; set\n  %s", nobody, strings.Join(missing, "\n  "))
}

// Input reads what was discovered.
func (o *Options) Input(ctx context.Context) (*snapshot.Input, error) {
	if o.Dir != "" {
		read, err := cmdutil.ReadFolder(o.Streams, o.Dir)
		if err != nil {
			return nil, err
		}
		return read.Input, nil
	}
	config, err := o.Kube.Config(o.Factory)
	if err != nil {
		return nil, err
	}
	plane := reading.Management{Config: config, Namespace: o.MgmtNamespace, Version: o.Factory.Version.Version,
		Detours: cmdutil.Detours(o.Factory, o.Kube.Kubeconfig)}
	in, err := o.Flags.Discovered(ctx, o.Streams, plane)
	if err != nil {
		return nil, err
	}
	return in, plane.CheckNamespace(ctx, in)
}

// outcome asks, or uses what the flags say.
func (o *Options) outcome(s *wizards.Session) (*wizards.Outcome, error) {
	if o.Asks && !o.Decided() {
		var out *wizards.Outcome
		err := s.Ask(func() (err error) {
			out, err = s.Finish(o.Dir == "")
			return err
		})
		return out, err
	}
	if o.Asks && (s.Name == "" || o.Form.Missing(s.Answers) != "") {
		if err := s.Ask(nil); err != nil {
			return nil, err
		}
	}
	return o.Flagged(s)
}

// Flagged is the outcome that the flags ask for.
func (o *Options) Flagged(s *wizards.Session) (*wizards.Outcome, error) {
	object, err := s.Object()
	if err != nil {
		return nil, &cmdutil.FlagError{Err: err}
	}
	if err := s.CheckFlags(object); err != nil {
		return nil, &cmdutil.FlagError{Err: fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)}
	}
	preview, err := s.Catalog.Preview(object)
	if err != nil {
		return nil, err
	}
	out := &wizards.Outcome{Object: object, Preview: preview}
	switch {
	case o.Apply:
		out.Decision = wizards.Apply
	case o.Save != "":
		out.Decision, out.File = wizards.Save, o.Save
	default:
		return out, nil
	}
	o.Say("%s", wizards.Text(preview.Warnings()))
	return out, nil
}

// Manifest is the object as YAML. It notes the finding if the object is not in force as a whole.
func (o *Options) Manifest(out *wizards.Outcome) ([]byte, error) {
	if out.Preview.HasErrors() && out.Decision != wizards.Cancel {
		o.Finding = cmdutil.ErrFindings
	}
	return wizards.YAML(out.Object)
}

// execute does what was decided, and returns the command that does the same.
func (o *Options) execute(ctx context.Context, s *wizards.Session, out *wizards.Outcome) ([]string, error) {
	data, err := o.Manifest(out)
	if err != nil {
		return nil, err
	}
	switch out.Decision {
	case wizards.Apply:
		if err := o.apply(ctx, out.Object); err != nil {
			return nil, err
		}
	case wizards.Save:
		if err := os.WriteFile(out.File, data, 0o644); err != nil {
			return nil, fmt.Errorf("save: %w", err)
		}
		o.Say("Saved to %s.\n", cmdutil.Clean(out.File))
	case wizards.Cancel:
		o.Say("Nothing was written.\n")
	default:
		return nil, o.show(s, out, data)
	}
	return o.equivalentCommand(s, out)
}

// show prints the manifest, and what it would change.
func (o *Options) show(s *wizards.Session, out *wizards.Outcome, data []byte) error {
	if err := o.PrintManifest(out, data); err != nil {
		return err
	}
	if s.Catalog.Exists(o.Form.Kind, s.Namespace, s.Name) {
		o.Say("%s already exists, and --apply would not replace it. To change it, use meshctl edit. This is what would change if it were replaced:\n", Title(out.Object))
	}
	o.Say("%s", wizards.Text(out.Preview.Summary()))
	return nil
}

// PrintManifest prints the manifest, of which data is the YAML.
func (o *Options) PrintManifest(out *wizards.Outcome, data []byte) error {
	if o.Output.Format == cmdutil.FormatJSON {
		return cmdutil.PrintJSON(o.Streams.Out, out.Object.Object)
	}
	_, err := o.Streams.Out.Write(data)
	return err //nolint:wrapcheck // it is printed to the stream that failed
}

// Ending are the last flags of an equivalent command: what to do with the manifest.
func Ending(out *wizards.Outcome) []string {
	switch out.Decision {
	case wizards.Apply:
		return []string{"--apply"}
	case wizards.Save:
		return []string{"--save", out.File}
	default:
		return []string{"--dry-run"}
	}
}

// equivalentCommand is the command that makes the same manifest.
func (o *Options) equivalentCommand(s *wizards.Session, out *wizards.Outcome) ([]string, error) {
	spec, _ := out.Object.Object["spec"].(map[string]any)
	answers, err := o.Form.AnswersFor(spec)
	if err != nil {
		return nil, err
	}
	words := append(o.BaseCommand(), s.Name, "--namespace", s.Namespace)
	words = append(words, o.Form.Arguments(answers)...)
	return append(words, Ending(out)...), nil
}

// BaseCommand is the command with the flags that say which objects to read.
func (o *Options) BaseCommand() []string {
	words := []string{"meshctl", cmp.Or(o.Verb, "create"), lower(o.Form.Kind)}
	for _, flag := range [][2]string{{"--dir", o.Dir}, {"--kubeconfig", o.Kube.Kubeconfig}, {"--context", o.Kube.Context}} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	if o.MgmtNamespace != snapshot.DefaultNamespace {
		words = append(words, "--mgmt-namespace", o.MgmtNamespace)
	}
	return words
}

// Title is how messages name an object.
func Title(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// apply creates the object. If it already exists with the same spec, nothing is
// changed; with another spec, that is an error.
func (o *Options) apply(ctx context.Context, object *unstructured.Unstructured) error {
	config, err := o.Kube.Config(o.Factory)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	resource := client.Resource(o.Form.Kind.GroupVersionResource()).Namespace(object.GetNamespace())
	name := Title(object)
	_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: "meshctl", FieldValidation: metav1.FieldValidationStrict})
	switch {
	case err == nil:
		o.Say("%s created.\n", name)
		return o.Settle(ctx, config, object)
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: %w", name, err)
	}
	there, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !equality.Semantic.DeepEqual(there.Object["spec"], object.Object["spec"]) {
		return fmt.Errorf("%s already exists with a different spec; choose another name, or change it with: meshctl edit %s %s -n %s", name, lower(o.Form.Kind), object.GetName(), object.GetNamespace())
	}
	o.Say("%s already exists with the same spec; nothing changed.\n", name)
	return o.Settle(ctx, config, object)
}

// SettleLive is Settle in the cluster that the flags name.
func (o *Options) SettleLive(ctx context.Context, object *unstructured.Unstructured) error {
	config, err := o.Kube.Config(o.Factory)
	if err != nil {
		return err
	}
	return o.Settle(ctx, config, object)
}

// Settle waits until the object is in force, and says where, or why it is not.
func (o *Options) Settle(ctx context.Context, config *rest.Config, object *unstructured.Unstructured) error {
	if kind := o.Form.Kind; kind == snapshot.Role || kind == snapshot.RoleBinding {
		o.Say("It counts where `meshctl serve` enforces Roles. Who may write what: meshctl describe role; meshctl why may\n")
		return nil
	}
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Waiting until it is in force")
	plane := reading.Management{Config: config, Namespace: o.MgmtNamespace, Version: o.Factory.Version.Version, Detours: cmdutil.Detours(o.Factory, o.Kube.Kubeconfig)}
	settled, err := plane.Settle(ctx, snapshot.Ref{Kind: o.Form.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
	progress.End(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		// It is written; only what became of it is not known.
		o.Say("Whether it is in force cannot be read: %s\n", cmdutil.Clean(kube.Text(err)))
		return nil
	}
	o.Say("%s\n", cmdutil.Clean(settled.Text()))
	if settled.Known() {
		o.Finding = nil
		if settled.Reason != "" {
			o.Finding = cmdutil.ErrFindings
		}
	}
	return nil
}
