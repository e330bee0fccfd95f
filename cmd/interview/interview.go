// Package interview is what commands that ask questions share: on what they
// ask, how answers outlive a run, and how what was discovered is read.
package interview

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/AlecAivazis/survey/v2/terminal"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/wizards"
)

// Flags are those of every command that asks.
type Flags struct {
	// Plain asks line by line.
	Plain bool
	// Recover is a file with kept answers.
	Recover string
}

// AddFlags adds --plain and --recover to cmd.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Recover, "recover", "", "continue with the answers in this `file`, which an interrupted run saved")
	cmd.Flags().BoolVar(&f.Plain, "plain", false, "ask line by line, for screen readers (default if TERM=dumb or ACCESSIBLE is set)")
	_ = cmd.MarkFlagFilename("recover", "yaml")
}

// Possible reports whether somebody can be asked.
func Possible(s *cmdutil.Streams) bool { return s.InTTY && s.ErrTTY }

// plain reports whether to ask line by line.
func (f *Flags) plain() bool {
	return f.Plain || os.Getenv("ACCESSIBLE") != "" || os.Getenv("TERM") == "dumb"
}

// Prompter returns the prompter for the terminal.
func (f *Flags) Prompter(ctx context.Context, s *cmdutil.Streams) wizards.Prompter {
	in, inFile := s.In.(terminal.FileReader)
	out, outFile := s.Err.(terminal.FileWriter)
	if f.plain() || !inFile || !outFile {
		return wizards.NewPlain(ctx, s.In, s.Err)
	}
	return wizards.NewTerminal(ctx, in, out)
}

// Progress tells what goes on: on lines of their own where lines are read aloud.
func (f *Flags) Progress(s *cmdutil.Streams) *cmdutil.Progress {
	told := *s
	told.ErrTTY = s.ErrTTY && !f.plain()
	return cmdutil.NewProgress(&told)
}

// Typed gives errors of the wizards the types that become exit codes; ctrl-c in
// a question counts as ctrl-c elsewhere.
func Typed(err error) error {
	switch {
	case errors.Is(err, wizards.ErrInterrupted):
		return context.Canceled
	case errors.Is(err, wizards.ErrNoCluster):
		return &cmdutil.UnreachableError{Err: err}
	}
	return err
}

// Keep writes the answers of a run that did not come to its end to a file that
// only the user can read, and says how to go on with the command.
func (f *Flags) Keep(s *cmdutil.Streams, answers any, command []string) {
	path, err := f.write(answers)
	if err != nil {
		_, _ = fmt.Fprintf(s.Err, "Your answers could not be saved: %v\n", err)
		return
	}
	_, _ = fmt.Fprintf(s.Err, "\nYour answers are saved in %s. To continue:\n\n  %s\n\n", path, wizards.Quote(append(command, "--recover", path)))
}

func (f *Flags) write(answers any) (string, error) {
	data, err := yaml.Marshal(answers)
	if err != nil {
		return "", err
	}
	if f.Recover != "" {
		return f.Recover, os.WriteFile(f.Recover, data, 0o600)
	}
	// CreateTemp gives mode 0600.
	file, err := os.CreateTemp("", "meshctl-answers-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return file.Name(), err
}

// Recall reads kept answers into what Keep was given.
func (f *Flags) Recall(into any) error {
	data, err := os.ReadFile(f.Recover)
	if err != nil {
		return cmdutil.NotFoundErrorf("answers: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("invalid answers in %s: %w", f.Recover, err)
	}
	return nil
}
