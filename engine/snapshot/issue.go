package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Severity ranks issues: a higher one is worse.
type Severity uint8

const (
	// Info: worth knowing, nothing to fix.
	Info Severity = iota
	// Warning: it works, but not as a user may expect.
	Warning
	// Error: something that a user wrote is not in force.
	Error
)

// String returns "info", "warning" or "error".
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// Code names a class of issues; codes are listed in codes.go and never reused.
type Code string

// Help is the command that explains the code.
func (c Code) Help() string { return "meshctl help " + string(c) }

// Issue is one thing that a person should know. Statuses, describe, check, the
// dashboard and the goldens all show the same issues.
type Issue struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	// Ref is the object to fix.
	Ref Ref `json:"object,omitzero"`
	// Field is the path below spec of Ref, as in Origin.Field; empty if it is about
	// no field in particular.
	Field string `json:"field,omitempty"`
	// Target is the Destination, Mesh or Workload on which it matters; zero if on all.
	Target Ref `json:"target,omitzero"`
	// Cause is the other object that causes it, such as the older policy that sets
	// the field, or a hand-written object; zero if there is none.
	Cause Ref `json:"cause,omitzero"`
	// Message is one sentence that says what is wrong, without the object's name.
	Message string `json:"message"`
	// Hint is the next step, as a sentence.
	Hint string `json:"hint,omitempty"`
}

// MarshalJSON implements json.Marshaler: the fields of the issue, and help, which is the command that explains
// its code.
func (i Issue) MarshalJSON() ([]byte, error) {
	type fields Issue
	data, err := json.Marshal(struct {
		fields
		Help string `json:"help"`
	}{fields(i), i.Code.Help()})
	if err != nil {
		return nil, fmt.Errorf("issue %s: write as JSON: %w", i.Code, err)
	}
	return data, nil
}

// Errorf makes an issue because of which something is not in force. It has no object
// yet; see On.
func Errorf(code Code, hint, format string, args ...any) Issue {
	return Issue{Code: code, Severity: Error, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// Warnf makes an issue about something that is in force.
func Warnf(code Code, hint, format string, args ...any) Issue {
	return Issue{Code: code, Severity: Warning, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// On is the issue on an object, as far as it matters to target.
func (i Issue) On(ref, target Ref) Issue {
	i.Ref, i.Target = ref, target
	return i
}

// At is the issue with a field of the object.
func (i Issue) At(field string) Issue {
	i.Field = field
	return i
}

// CausedBy is the issue with the other object that causes it.
func (i Issue) CausedBy(cause Ref) Issue {
	i.Cause = cause
	return i
}

// HasErrors reports whether any issue is an error.
func HasErrors(issues []Issue) bool {
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Severity == Error })
}

// Object names what the issue is about, such as "TrafficPolicy bookinfo/slow on
// reviews-bookinfo-cluster-1"; empty if it names nothing.
func (i Issue) Object() string {
	text := strings.TrimSpace(i.Ref.String())
	if i.Target != (Ref{}) && i.Target != i.Ref {
		text += " on " + i.Target.Name
	}
	return text
}

// Summary is object, message and code in one line, as every list of issues shows
// them: beside the severity, and above the hint.
func (i Issue) Summary() string {
	text := i.Message + " (" + string(i.Code) + ")"
	if object := i.Object(); object != "" {
		text = object + ": " + text
	}
	return text
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
	if c := strings.Compare(i.Hint, o.Hint); c != 0 {
		return c
	}
	if c := strings.Compare(i.Field, o.Field); c != 0 {
		return c
	}
	return i.Cause.Compare(o.Cause)
}
