package snapshot

import (
	"cmp"
	"strings"
)

// Severity ranks issues: a higher one is worse.
type Severity uint8

const (
	// Info: worth knowing, nothing to mend.
	Info Severity = iota
	// Warning: it works, though not as somebody may think.
	Warning
	// Error: something that a user asked for is not in force.
	Error
)

// String returns "info", "warning" or "error".
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// Code names a class of issues; codes are listed in codes.go and never reused.
type Code string

// Issue is one thing that a person should know. Statuses, describe, check, the
// dashboard and the goldens all show the same issues.
type Issue struct {
	Code     Code
	Severity Severity
	// Ref is the object to mend.
	Ref Ref
	// Target is the Destination, Mesh or Workload on which it matters; zero if on all.
	Target Ref
	// Message is one sentence that says what is wrong, without the object's name.
	Message string
	// Hint is the next step, as a sentence.
	Hint string
}

// Text is message and hint in one line, as written to statuses.
func (i Issue) Text() string {
	if i.Hint == "" {
		return i.Message
	}
	return i.Message + "; " + i.Hint
}

// Compare orders issues worst first, then by object, target, code and text.
func (i Issue) Compare(o Issue) int {
	if c := cmp.Compare(o.Severity, i.Severity); c != 0 {
		return c
	}
	if c := i.Ref.Compare(o.Ref); c != 0 {
		return c
	}
	if c := i.Target.Compare(o.Target); c != 0 {
		return c
	}
	if c := strings.Compare(string(i.Code), string(o.Code)); c != 0 {
		return c
	}
	if c := strings.Compare(i.Message, o.Message); c != 0 {
		return c
	}
	return strings.Compare(i.Hint, o.Hint)
}
