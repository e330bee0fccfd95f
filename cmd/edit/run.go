package edit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

func editRun(ctx context.Context, opts *Options) error {
	if err := opts.Begin(ctx); err != nil {
		return err
	}
	in, doc, err := opts.open(ctx)
	if err != nil {
		return err
	}
	err = opts.run(ctx, in, doc)
	if err != nil && opts.Asks && !opts.Decided() {
		opts.SaveAnswers()
	}
	if err != nil {
		return interview.ExitError(err)
	}
	return opts.Finding
}

// open reads what was discovered, and the object to edit. That it does not exist is said before missing settings are.
func (o *Options) open(ctx context.Context) (*snapshot.Input, *document, error) {
	missing := o.complete()
	if missing != nil && o.Name == "" && o.File == "" {
		return nil, nil, missing
	}
	in, err := o.Input(ctx)
	var doc *document
	if err == nil {
		doc, err = o.find(ctx, wizards.NewCatalog(in, o.Now()))
	}
	if missing != nil && cmdutil.ExitCode(err) != cmdutil.ExitNotFound {
		err = missing
	}
	return in, doc, err
}

// complete rejects missing settings, unless there is a terminal to ask on.
func (o *Options) complete() error {
	var missing []string
	if o.Name == "" && o.File == "" {
		missing = append(missing, "a name: "+o.path+" NAME; to see them: meshctl describe "+strings.ToLower(o.Form.Kind.String()))
	}
	if !o.Asks && !o.Decided() {
		missing = append(missing, create.Undecided)
	}
	if !o.Asks && len(o.Answers) == 0 && len(o.Unset) == 0 {
		missing = append(missing, "what to change: flags of this command, --field PATH=JSON or --unset PATH")
	}
	return o.MissingError(missing)
}

// run edits until it is written, or until nobody wants it any more.
func (o *Options) run(ctx context.Context, in *snapshot.Input, doc *document) error {
	if o.Checker == nil {
		o.Checker = admission.NewChecker()
	}
	edited, err := o.earlier(doc)
	if err != nil {
		return err
	}
	for given := o.Answers; ; {
		s, err := o.session(in, doc, edited, given)
		if err != nil {
			return err
		}
		out, err := o.outcome(s, doc)
		o.Answers = s.Answers
		if err != nil {
			return err
		}
		theirs, err := o.execute(ctx, s, doc, out)
		if err != nil || theirs == nil {
			return err
		}
		// Somebody was faster. What they made of it is what is edited from now on.
		next, err := o.merge(edited, theirs, out)
		if err != nil {
			return err
		}
		doc, edited, given, o.Answers = &document{object: theirs}, next, wizards.Answers{}, wizards.Answers{}
	}
}

// earlier is the object to edit, and what the questions propose of it.
func (o *Options) earlier(doc *document) (*wizards.Earlier, error) {
	e, err := wizards.NewEarlier(o.Form, doc.object)
	if err != nil {
		return nil, err
	}
	if err := e.Unset(o.Unset); err != nil {
		return nil, &cmdutil.FlagError{Err: err}
	}
	return e, nil
}

// session begins the questions, or says all that flags say.
func (o *Options) session(in *snapshot.Input, doc *document, edited *wizards.Earlier, given wizards.Answers) (*wizards.Session, error) {
	stored, err := doc.typed(o.Form.Kind)
	if err != nil {
		return nil, err
	}
	if doc.file == "" || in.Find(snapshot.RefOf(o.Form.Kind, stored)) == nil {
		if in, err = in.With("", stored); err != nil {
			return nil, fmt.Errorf("%s %s/%s: %w", o.Form.Kind, o.Namespace, o.Name, err)
		}
	}
	catalog := wizards.NewCatalog(in, o.Now())
	if err := create.FullNames(catalog, o.Form, given); err != nil {
		return nil, err
	}
	answers, err := edited.Begin(given, o.Asks && !o.Decided())
	if err != nil {
		return nil, &cmdutil.FlagError{Err: err}
	}
	s := &wizards.Session{
		Prompter: o.Prompter, Form: o.Form, Catalog: catalog, Checker: o.Checker,
		Namespace: o.Namespace, Name: o.Name, Answers: answers, Edits: edited,
	}
	return s, nil
}

// outcome asks, or uses what the flags say.
func (o *Options) outcome(s *wizards.Session, doc *document) (*wizards.Outcome, error) {
	if o.Asks && !o.Decided() {
		s.File = doc.file
		var out *wizards.Outcome
		err := s.Ask(func() (err error) {
			out, err = s.Finish(o.Dir == "" && o.File == "")
			return err
		})
		return out, err
	}
	out, err := o.Flagged(s)
	if err != nil {
		return nil, err
	}
	said, err := s.Edits.TrustChanges(s)
	if err != nil {
		return nil, err
	}
	o.Say("%s", wizards.Text(said))
	return out, nil
}

// execute does what was decided. It returns the object if somebody else changed it meanwhile, and somebody can be asked.
func (o *Options) execute(ctx context.Context, s *wizards.Session, doc *document, out *wizards.Outcome) (theirs *object, err error) {
	data, err := o.Manifest(out)
	if err != nil {
		return nil, err
	}
	switch out.Decision {
	case wizards.Apply:
		err := o.update(ctx, doc.object, out.Object)
		if faster := (*fasterError)(nil); errors.As(err, &faster) && o.Asks && !o.Decided() {
			o.Finding = nil
			return faster.theirs, nil
		}
		if err != nil {
			return nil, err
		}
	case wizards.Save:
		if out.File == doc.file && doc.losesComments() {
			o.Say("Note: comments inside of the manifest are not kept.\n")
		}
		if err := doc.save(out.File, data); err != nil {
			return nil, err
		}
		o.Say("Saved to %s.\n", cmdutil.Clean(out.File))
	case wizards.Cancel:
		o.Say("Nothing was written.\n")
	default:
		return nil, o.show(s, out, data)
	}
	return nil, o.sayCommand(s, out)
}

// show prints the manifest, and what changes by it.
func (o *Options) show(s *wizards.Session, out *wizards.Outcome, data []byte) error {
	if err := o.PrintManifest(out, data); err != nil {
		return err
	}
	changes, err := s.Edits.ChangesOf(out.Object)
	if err != nil {
		return err
	}
	o.Say("%s%s", wizards.Text(wizards.Changed(changes)), wizards.Text(out.Preview.Summary()))
	return nil
}

// sayCommand prints the command that makes the same of the object as it was.
func (o *Options) sayCommand(s *wizards.Session, out *wizards.Outcome) error {
	spec, _ := out.Object.Object["spec"].(map[string]any)
	flags, err := s.Edits.Arguments(spec)
	if err != nil || len(flags) == 0 {
		return err
	}
	words := append(o.BaseCommand(), s.Name, "--namespace", s.Namespace)
	if o.File != "" {
		words = append(words, "--filename", o.File)
	}
	words = append(append(words, flags...), create.Ending(out)...)
	o.Say("Equivalent command:\n\n  %s\n", wizards.Quote(words))
	return nil
}

// merge says what somebody else changed, and proposes that together with what was answered.
func (o *Options) merge(edited *wizards.Earlier, theirs *object, out *wizards.Outcome) (*wizards.Earlier, error) {
	next, err := wizards.NewEarlier(o.Form, theirs)
	if err != nil {
		return nil, err
	}
	changes, err := edited.ChangesOf(theirs)
	if err != nil {
		return nil, err
	}
	spec, _ := out.Object.Object["spec"].(map[string]any)
	mine, err := o.Form.AnswersFor(spec)
	if err != nil {
		return nil, err
	}
	o.Say("\n%s changed while you edited it%s. Nothing was written.\n%s", create.Title(theirs), writer(theirs), wizards.Text(wizards.Changed(changes)))
	if both := edited.Merge(next, mine); len(both) > 0 {
		o.Say("Both of you changed: %s; yours is proposed.\n", cmdutil.Clean(strings.Join(both, ", ")))
	}
	o.Say("The questions again, with both changes as defaults; ctrl-c cancels.\n")
	return next, nil
}

// find reads the object to edit.
func (o *Options) find(ctx context.Context, catalog *wizards.Catalog) (*document, error) {
	if namespace, name, ok := strings.Cut(o.Name, "/"); ok {
		o.Namespace, o.Name = namespace, name
	}
	if o.File != "" {
		return o.findInFile()
	}
	given := o.Namespace
	o.Namespace = cmp.Or(o.Namespace, o.MgmtNamespace)
	ref := snapshot.Ref{Kind: o.Form.Kind, Namespace: o.Namespace, Name: o.Name}
	stored := catalog.Input.Find(ref)
	if stored == nil {
		found, err := create.PickNamespaced(catalog.Index(), o.Form.Kind, given, o.Name)
		if err != nil {
			return nil, err
		}
		if found.Cluster != "" {
			return nil, fmt.Errorf("%s: it is written in cluster %s; edit it there, such as with: kubectl edit", found, found.Cluster)
		}
		ref, o.Namespace, o.Name = found, found.Namespace, found.Name
		stored = catalog.Input.Find(ref)
	}
	if o.Dir == "" {
		object, err := o.get(ctx, ref)
		return &document{object: object}, err
	}
	if d := inFolder(o.Dir, ref); d != nil {
		return d, nil
	}
	object, err := untyped(stored, o.Form.Kind)
	return &document{object: object}, err
}

// findInFile finds the object in --filename.
func (o *Options) findInFile() (*document, error) {
	documents, err := inFile(o.File, o.Form.Kind)
	if err != nil {
		return nil, err
	}
	var names []string
	var found []*document
	for _, d := range documents {
		if d.object.GetNamespace() == "" {
			d.object.SetNamespace(cmp.Or(o.Namespace, o.MgmtNamespace))
		}
		names = append(names, d.object.GetNamespace()+"/"+d.object.GetName())
		if (o.Name == "" || d.object.GetName() == o.Name) && (o.Namespace == "" || d.object.GetNamespace() == o.Namespace) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 1:
		o.Name, o.Namespace = found[0].object.GetName(), found[0].object.GetNamespace()
		return found[0], nil
	case len(names) == 0:
		return nil, cmdutil.NotFoundErrorf("%s has no %s; name another file with -f", o.File, o.Form.Kind)
	case len(found) == 0:
		return nil, cmdutil.NotFoundErrorf("%s has no %s of that name; it has: %s", o.File, o.Form.Kind, strings.Join(names, ", "))
	}
	return nil, cmdutil.FlagErrorf("%s has several; name one of: %s", o.File, strings.Join(names, ", "))
}
