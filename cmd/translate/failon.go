package translate

import (
	"errors"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// failOn is the flag that says which issues fail the command.
type failOn string

const (
	failOnError   failOn = "error"
	failOnWarning failOn = "warning"
	failOnNever   failOn = "never"
)

// String is part of pflag.Value.
func (f *failOn) String() string { return string(*f) }

// Type is part of pflag.Value.
func (f *failOn) Type() string { return "severity" }

// Set is part of pflag.Value.
func (f *failOn) Set(s string) error {
	if !slices.Contains([]failOn{failOnError, failOnWarning, failOnNever}, failOn(s)) {
		return errors.New("must be one of error, warning, never")
	}
	*f = failOn(s)
	return nil
}

func (f failOn) fails(issues []snapshot.Issue) bool {
	least := snapshot.Error
	switch f {
	case failOnNever:
		return false
	case failOnWarning:
		least = snapshot.Warning
	}
	return slices.ContainsFunc(issues, func(i snapshot.Issue) bool { return i.Severity >= least })
}
