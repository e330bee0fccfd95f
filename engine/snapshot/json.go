package snapshot

import "fmt"

// MarshalText writes the name of k, so that JSON and YAML show "Mesh", not 1: with its group, if a kind before it has the same name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.text()), nil }

func (k Kind) text() string {
	for before := NoKind; before < k; before++ {
		if kinds[before].Kind == kinds[k].Kind {
			return kinds[k].Kind + "." + kinds[k].Group
		}
	}
	return kinds[k].Kind
}

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := NoKind; i < kindCount; i++ {
		if i.text() == string(text) {
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
