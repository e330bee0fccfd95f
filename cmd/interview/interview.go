// Package interview is what commands that ask questions share: the prompter, the
// file with the answers of an interrupted run, and how discovered objects are
// read.
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
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/wizards"
)

// Flags are those of every command that asks questions.
type Flags struct {
	// Plain: ask line by line, without moving the cursor.
	Plain bool
	// Recover is a file with the answers of an interrupted run.
	Recover string
	// Dir is where SaveAnswers makes a file; empty for the system's temporary folder.
	Dir string
}

// AddFlags adds --plain and --recover to cmd.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Recover, "recover", "", "continue with the answers in this `file`, which an interrupted run saved")
	cmd.Flags().BoolVar(&f.Plain, "plain", false, "ask line by line, for screen readers (default if TERM=dumb or ACCESSIBLE is set)")
	_ = cmd.MarkFlagFilename("recover", "yaml")
}

// CanAsk reports whether there is a terminal to ask on.
func CanAsk(s *cmdutil.Streams) bool { return s.InTTY && s.ErrTTY }

// plain reports whether to ask line by line.
func (f *Flags) plain() bool {
	return f.Plain || cmdutil.IsPlain(os.Getenv)
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

// Progress reports what the command does; with --plain, in lines that are not
// overwritten.
func (f *Flags) Progress(s *cmdutil.Streams) *cmdutil.Progress {
	streams := *s
	streams.ErrTTY = s.ErrTTY && !f.plain()
	return cmdutil.NewProgress(&streams)
}

// ExitError gives errors of the wizards the types that decide the exit code.
// Ctrl-c in a question counts as ctrl-c elsewhere.
func ExitError(err error) error {
	switch {
	case errors.Is(err, wizards.ErrInterrupted):
		return context.Canceled
	case errors.Is(err, wizards.ErrNoCluster):
		return &cmdutil.UnreachableError{Err: err}
	}
	return err
}

// SaveAnswers writes the answers of an interrupted run to a file that only the
// user can read, and prints the command that continues.
func (f *Flags) SaveAnswers(s *cmdutil.Streams, answers any, command []string) {
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
	file, err := os.CreateTemp(f.Dir, "meshctl-answers-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return file.Name(), err
}

// LoadAnswers reads the answers that SaveAnswers wrote.
func (f *Flags) LoadAnswers(into any) error {
	data, err := offline.ReadFile(f.Recover)
	if err != nil {
		return cmdutil.NotFoundErrorf("answers: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("invalid answers in %s: %w", f.Recover, err)
	}
	return nil
}
