package snapshot

import "fmt"

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
