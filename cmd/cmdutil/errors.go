package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/engine/reading"
)

// Exit codes. They are promised to scripts: `meshctl help exit-codes` lists them.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitUnreachable = 4
	ExitFindings    = 5
	ExitInterrupted = 130
)

// ExitCodesHelp explains the exit codes to people.
const ExitCodesHelp = `Exit codes of meshctl:

  0    success
  1    failure; standard error says why
  2    invalid command, flag or argument
  3    the object, file or folder does not exist
  4    a cluster cannot be reached, or the kubeconfig does not say how
  5    success, but problems were found (meshctl check; meshctl translate
       --fail-on), the request is not allowed (meshctl why), the object was
       rejected (meshctl wait), not all of what was created is in force
       (meshctl create, edit, init), or something has no backup
       (meshctl simulate)
  130  interrupted by ctrl-c or SIGTERM

"meshctl plan" exits with 0 if nothing would change, with 2 if something would,
with 5 if the API server would refuse it or --fail-on says so, and with 1 for
any error; "meshctl debug diff" likewise, with 0 if nothing differs, and 2 if
something does.`

// ErrSilent fails a command that has already said why.
var ErrSilent = errors.New("failed")

// ErrFindings ends a command that did its work and has shown the problems
// that it found.
var ErrFindings = errors.New("problems found")

// FlagError is a mistake in the command line; the usage hint is shown with it.
type FlagError struct{ Err error }

func (e *FlagError) Error() string { return e.Err.Error() }
func (e *FlagError) Unwrap() error { return e.Err }

// FlagErrorf makes a FlagError.
func FlagErrorf(format string, args ...any) error {
	return &FlagError{Err: fmt.Errorf(format, args...)}
}

// NotFoundError says that the thing asked for does not exist.
type NotFoundError struct{ Err error }

func (e *NotFoundError) Error() string { return e.Err.Error() }
func (e *NotFoundError) Unwrap() error { return e.Err }

// NotFoundErrorf makes a NotFoundError.
func NotFoundErrorf(format string, args ...any) error {
	return &NotFoundError{Err: fmt.Errorf(format, args...)}
}

// UnreachableError says that no connection to a cluster can be made.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// UnreachableErrorf makes an UnreachableError.
func UnreachableErrorf(format string, args ...any) error {
	return &UnreachableError{Err: fmt.Errorf(format, args...)}
}

// IsSilent reports whether nothing more is to be said about err.
func IsSilent(err error) bool {
	return errors.Is(err, ErrSilent) || errors.Is(err, ErrFindings)
}

// codeError has an exit code of its own.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

// WithCode gives an error an exit code.
func WithCode(code int, err error) error { return &codeError{code, err} }

// failsWith is the annotation of a command whose errors all have one exit code.
const failsWith = "meshctl.io/fails-with"

// FailWith makes all errors of a command exit with one code, also wrong flags and arguments; but for
// those that have one by WithCode, and interruptions.
func FailWith(cmd *cobra.Command, code int) {
	annotate(cmd, failsWith, strconv.Itoa(code))
}

// Failure is the error of a command, with the code of FailWith.
func Failure(cmd *cobra.Command, err error) error {
	if had := (*codeError)(nil); err == nil || cmd == nil || errors.As(err, &had) || errors.Is(err, context.Canceled) {
		return err
	}
	if code, bad := strconv.Atoi(cmd.Annotations[failsWith]); bad == nil {
		return WithCode(code, err)
	}
	return err
}

// ExitCode is the one place where errors become exit codes.
func ExitCode(err error) int {
	var (
		flag        *FlagError
		notFound    *NotFoundError
		nothing     *reading.NotFoundError
		format      *reading.FormatError
		unreachable *UnreachableError
		request     *url.Error
		dial        *net.OpError
		own         *codeError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.As(err, &flag), errors.As(err, &format):
		return ExitUsage
	case errors.As(err, &notFound), errors.As(err, &nothing):
		return ExitNotFound
	case errors.Is(err, ErrFindings):
		return ExitFindings
	case errors.As(err, &unreachable), errors.As(err, &request), errors.As(err, &dial):
		return ExitUnreachable
	}
	return ExitFailure
}
