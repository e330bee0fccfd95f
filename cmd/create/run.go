package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/AlecAivazis/survey/v2/terminal"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/translate"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
	"github.com/meshctl/meshctl/wizards"
)

func createRun(ctx context.Context, opts *Options) error {
	opts.Namespace = cmp.Or(opts.Namespace, opts.MgmtNamespace)
	if opts.Recover != "" {
		if err := opts.recall(); err != nil {
			return err
		}
	}
	asks := opts.Prompter != nil || opts.Streams.InTTY && opts.Streams.ErrTTY
	decided := opts.Apply || opts.DryRun || opts.Save != ""
	if !asks || decided {
		if err := opts.complete(asks); err != nil {
			return err
		}
	}
	in, err := opts.input(ctx)
	if err != nil {
		return err
	}
	s := &wizards.Session{
		Prompter: opts.Prompter, Form: opts.Form, World: wizards.NewWorld(in, opts.Now()), Checker: admission.NewChecker(),
		Namespace: opts.Namespace, Name: opts.Name, Answers: opts.Answers,
	}
	if asks && s.Prompter == nil {
		s.Prompter = opts.prompter(ctx)
	}
	out, err := opts.outcome(s, asks, decided)
	if err != nil {
		return err
	}
	err = opts.carryOut(ctx, s, out)
	if err != nil && asks {
		opts.keep(s)
	}
	return err
}

// complete refuses what is missing; where somebody can be asked, nothing is.
func (o *Options) complete(asks bool) error {
	if asks {
		return nil
	}
	missing := o.Form.Missing(o.Answers)
	switch {
	case o.Name == "":
		return cmdutil.FlagErrorf("say what it is called: %s NAME", o.command)
	case missing != "":
		return cmdutil.FlagErrorf("not all is said, and there is no terminal to ask on; give %s", missing)
	case !o.Apply && !o.DryRun && o.Save == "":
		return cmdutil.FlagErrorf("say what to do with it: --apply, --save FILE, or --dry-run to see it")
	}
	return nil
}

// input reads what was discovered.
func (o *Options) input(ctx context.Context) (*snapshot.Input, error) {
	if o.From != "" {
		in, _, err := translate.Load(o.From)
		return in, err
	}
	config, err := o.Kube.Config(o.factory)
	if err != nil {
		return nil, err
	}
	return watch.ReadOnce(ctx, config, o.MgmtNamespace)
}

// prompter fits the terminal.
func (o *Options) prompter(ctx context.Context) wizards.Prompter {
	in, inFile := o.Streams.In.(terminal.FileReader)
	out, outFile := o.Streams.Err.(terminal.FileWriter)
	if o.Plain || os.Getenv("ACCESSIBLE") != "" || os.Getenv("TERM") == "dumb" || !inFile || !outFile {
		return wizards.NewPlain(ctx, o.Streams.In, o.Streams.Err)
	}
	return &wizards.Terminal{In: in, Out: out}
}

// outcome asks, or takes what the flags say.
func (o *Options) outcome(s *wizards.Session, asks, decided bool) (*wizards.Outcome, error) {
	if asks && (s.Name == "" || o.Form.Missing(s.Answers) != "" || !decided) {
		if err := s.Ask(); err != nil {
			o.keep(s)
			return nil, interrupted(err)
		}
	}
	if asks && !decided {
		out, err := s.Finish(o.From == "")
		if err != nil {
			o.keep(s)
			return nil, interrupted(err)
		}
		return out, nil
	}
	object, err := s.Object()
	if err != nil {
		return nil, &cmdutil.FlagError{Err: err}
	}
	if err := s.Check(object); err != nil {
		return nil, &cmdutil.FlagError{Err: fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)}
	}
	preview, err := s.World.Preview(object)
	if err != nil {
		return nil, err
	}
	out := &wizards.Outcome{Object: object, Preview: preview}
	switch {
	case o.Apply:
		out.Decision = wizards.Apply
	case o.Save != "":
		out.Decision, out.File = wizards.Save, o.Save
	}
	return out, nil
}

// interrupted gives ctrl-c in a prompt the exit code of ctrl-c elsewhere.
func interrupted(err error) error {
	if errors.Is(err, wizards.ErrInterrupted) {
		return context.Canceled
	}
	return err
}

// carryOut does what was decided, and shows the command that does the same.
func (o *Options) carryOut(ctx context.Context, s *wizards.Session, out *wizards.Outcome) error {
	data, err := wizards.YAML(out.Object)
	if err != nil {
		return err
	}
	said := func(format string, args ...any) { _, _ = fmt.Fprintf(o.Streams.Err, format, args...) }
	switch out.Decision {
	case wizards.Apply:
		if err := o.apply(ctx, out.Object); err != nil {
			return err
		}
	case wizards.Save:
		if err := os.WriteFile(out.File, data, 0o644); err != nil {
			return fmt.Errorf("save: %w", err)
		}
		said("Saved to %s.\n", cmdutil.Clean(out.File))
	case wizards.Cancel:
		said("Nothing was written.\n")
	default:
		if o.Output.Format == cmdutil.FormatJSON {
			if err := cmdutil.PrintJSON(o.Streams.Out, out.Object.Object); err != nil {
				return err
			}
		} else if _, err := o.Streams.Out.Write(data); err != nil {
			return err
		}
		said("%s", out.Preview.Summary())
		return nil
	}
	command, err := o.equivalent(s, out)
	if err != nil {
		return err
	}
	said("The same without questions:\n\n  %s\n", command)
	return nil
}

// equivalent is the command that gives the same manifest.
func (o *Options) equivalent(s *wizards.Session, out *wizards.Outcome) (string, error) {
	spec, _ := out.Object.Object["spec"].(map[string]any)
	answers, err := o.Form.AnswersFor(spec)
	if err != nil {
		return "", err
	}
	words := append(o.where(), s.Name, "--namespace", s.Namespace)
	words = append(words, o.Form.Arguments(answers)...)
	switch out.Decision {
	case wizards.Apply:
		words = append(words, "--apply")
	case wizards.Save:
		words = append(words, "--save", out.File)
	default:
		words = append(words, "--dry-run")
	}
	return wizards.Quote(words), nil
}

// where is the command with the flags that say where to look.
func (o *Options) where() []string {
	words := []string{"meshctl", "create", lower(o.Form.Kind)}
	for _, flag := range [][2]string{{"--from", o.From}, {"--kubeconfig", o.Kube.Kubeconfig}, {"--context", o.Kube.Context}} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	if o.MgmtNamespace != snapshot.DefaultNamespace {
		words = append(words, "--mgmt-namespace", o.MgmtNamespace)
	}
	return words
}

// apply creates the object. One that is there already and says the same is
// left; one that says something else is not overwritten.
func (o *Options) apply(ctx context.Context, object *unstructured.Unstructured) error {
	config, err := o.Kube.Config(o.factory)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	info := o.Form.Kind.Info()
	resource := client.Resource(info.GroupVersion().WithResource(info.Resource)).Namespace(object.GetNamespace())
	name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
	_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: "meshctl", FieldValidation: metav1.FieldValidationStrict})
	switch {
	case err == nil:
		_, _ = fmt.Fprintf(o.Streams.Err, "%s is created.\n", name)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s: %w", name, err)
	}
	there, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !equality.Semantic.DeepEqual(there.Object["spec"], object.Object["spec"]) {
		return fmt.Errorf("%s exists already and says something else; choose another name, or change it with kubectl edit", name)
	}
	_, _ = fmt.Fprintf(o.Streams.Err, "%s is there already and says the same; nothing was changed.\n", name)
	return nil
}
