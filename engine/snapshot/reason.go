package snapshot

import (
	"slices"
	"strings"
)

// Reason says why something is not as it should be. Programs look at the Code, and people read the rest, which may be
// worded otherwise in each version.
type Reason struct {
	Code Code `json:"code"`
	// Cause is why a cluster is frozen, with the code ClusterFrozen (see NewOutage), or what it waits for, with the code ClusterLeaving
	// (see Leaving); empty with other codes.
	Cause Code `json:"cause,omitempty"`
	// What is the case, as a sentence. It changes only if the cause does.
	What string `json:"what"`
	// Hint is the next step, as a sentence; empty if there is none.
	Hint string `json:"hint,omitempty"`
	// ReleaseCode is what `meshctl cluster release --code` takes while a deletion is held; empty with other codes.
	ReleaseCode string `json:"releaseCode,omitempty"`
}

// Codes of reasons, beside those of issues: why a registered cluster is not healthy, and others.
const (
	// CredentialInvalid: what is stored is no credential.
	CredentialInvalid Code = "CredentialInvalid"
	// CredentialRefused: the cluster does not accept it, or it has expired.
	CredentialRefused Code = "CredentialRefused"
	// CredentialOverdue: it expires soon, and nobody has renewed it.
	CredentialOverdue Code = "CredentialOverdue"
	// PermissionsMissing: it may not do all that serve needs.
	PermissionsMissing Code = "PermissionsMissing"
	// DifferentCluster: it leads to another cluster than the registered one.
	DifferentCluster Code = "DifferentCluster"
	// NotChecked: the API server does not say what is to be known of it.
	NotChecked Code = "NotChecked"
	// ReachedByServe: it cannot be reached from here, and serve reaches it; NotReachedByServe is the reverse.
	ReachedByServe    Code = "ReachedByServe"
	NotReachedByServe Code = "NotReachedByServe"
	// Unregistered: a credential that no registration names.
	Unregistered Code = "Unregistered"
	// VersionSkew: what is installed is of another version.
	VersionSkew Code = "VersionSkew"
	// NotCleaned: it was deregistered, and not cleaned.
	NotCleaned Code = "NotCleaned"
)

// String is the reason with its next step.
func (r Reason) String() string { return Sentences(r.What, r.Hint) }

// Sentences joins those that are not empty.
func Sentences(all ...string) string {
	var out []string
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "; ")
}

// Advice is an error that knows the next step.
type Advice interface {
	error
	// Advice is what Error says, in two sentences; the hint may be empty.
	Advice() (what, hint string)
}

// ReasonOf is an error as a reason.
func ReasonOf(code Code, err error) Reason {
	if advice, ok := err.(Advice); ok { //nolint:errorlint // one that wraps it has more to say
		what, hint := advice.Advice()
		return Reason{Code: code, What: what, Hint: hint}
	}
	return Reason{Code: code, What: err.Error()}
}

// Reasons are several of them.
type Reasons []Reason

// Of is the first with one of some codes; nil if there is none.
func (r Reasons) Of(codes ...Code) *Reason {
	if i := slices.IndexFunc(r, func(one Reason) bool { return slices.Contains(codes, one.Code) }); i >= 0 {
		return &r[i]
	}
	return nil
}

// Advice is what is the case first, and what else there is to be said.
func (r Reasons) Advice() (what, hint string) {
	if len(r) == 0 {
		return "", ""
	}
	rest := []string{r[0].Hint}
	for _, more := range r[1:] {
		rest = append(rest, more.String())
	}
	return r[0].What, Sentences(rest...)
}

// String is all of them.
func (r Reasons) String() string { return Sentences(r.Advice()) }
