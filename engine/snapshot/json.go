package snapshot

import (
	"encoding/json"
	"fmt"

	"k8s.io/utils/ptr"
)

// MarshalText writes the name of k, so that JSON and YAML show "Mesh", not 1.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := NoKind; i < kindCount; i++ {
		if kinds[i].Kind == string(text) {
			*k = i
			return nil
		}
	}
	return fmt.Errorf("kind %q is not one that meshctl knows", text)
}

// MarshalText writes s as String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Severity) UnmarshalText(text []byte) error {
	for i := Info; i <= Error; i++ {
		if i.String() == string(text) {
			*s = i
			return nil
		}
	}
	return fmt.Errorf("severity %q is none of info, warning, error", text)
}

// MarshalText writes s as String does.
func (s Sync) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Sync) UnmarshalText(text []byte) error {
	for i := Unsynced; i <= Synced; i++ {
		if i.String() == string(text) {
			*s = i
			return nil
		}
	}
	return fmt.Errorf("sync %q is none of unsynced, stale, synced", text)
}

// refJSON is a Ref as data: the management plane has no cluster.
type refJSON struct {
	Kind      Kind   `json:"kind,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// MarshalJSON writes r as an object with kind, cluster, namespace and name.
func (r Ref) MarshalJSON() ([]byte, error) { return json.Marshal(refJSON(r)) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Ref) UnmarshalJSON(data []byte) error {
	var j refJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*r = Ref(j)
	return nil
}

// issueJSON is an Issue as data.
type issueJSON struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Object   *Ref     `json:"object,omitempty"`
	Field    string   `json:"field,omitempty"`
	Target   *Ref     `json:"target,omitempty"`
	Cause    *Ref     `json:"cause,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// MarshalJSON writes i as an object; references that name nothing are left out.
func (i Issue) MarshalJSON() ([]byte, error) {
	return json.Marshal(issueJSON{
		Severity: i.Severity, Code: i.Code, Object: refOrNil(i.Ref), Field: i.Field, Target: refOrNil(i.Target), Cause: refOrNil(i.Cause),
		Message: i.Message, Hint: i.Hint,
	})
}

func refOrNil(r Ref) *Ref {
	if r == (Ref{}) {
		return nil
	}
	return &r
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (i *Issue) UnmarshalJSON(data []byte) error {
	var j issueJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*i = Issue{
		Severity: j.Severity, Code: j.Code, Ref: ptr.Deref(j.Object, Ref{}), Field: j.Field, Target: ptr.Deref(j.Target, Ref{}), Cause: ptr.Deref(j.Cause, Ref{}),
		Message: j.Message, Hint: j.Hint,
	}
	return nil
}
