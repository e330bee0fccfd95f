package cmdutil

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
)

// SortFlag is the flag --sort-by: a path to a field of what -o json prints of an object.
type SortFlag struct{ path *jsonPath }

// AddFlag adds --sort-by to cmd; the example is a path.
func (s *SortFlag) AddFlag(cmd *cobra.Command, example string) {
	cmd.Flags().Var(s, "sort-by", "sort by the field at this `path` in -o json, such as "+example)
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.NoFileCompletions)
}

// String is part of pflag.Value.
func (s *SortFlag) String() string {
	if s == nil || s.path == nil {
		return ""
	}
	return s.path.text
}

// Type is part of pflag.Value.
func (s *SortFlag) Type() string { return "path" }

// Set is part of pflag.Value.
func (s *SortFlag) Set(text string) error {
	path, err := parsePath(text)
	s.path = path
	return err
}

// Sort sorts elements of a list by a field of what item returns of them; those without it come last, and equal
// ones stay in their order. Without --sort-by, all do.
func Sort[T any](s *SortFlag, list []T, item func(T) any) error {
	if s.path == nil {
		return nil
	}
	type keyed struct {
		element T
		key     any
	}
	sorted := make([]keyed, len(list))
	for i, element := range list {
		value := item(element)
		data, err := generic(value)
		if err != nil {
			return fmt.Errorf("--sort-by %s: %w", s, err)
		}
		found, err := s.path.find(data, bare(reflect.TypeOf(value)))
		if err != nil {
			return FlagErrorf("--sort-by: %w", err)
		}
		sorted[i].element = element
		if len(found) > 0 {
			sorted[i].key = found[0]
		}
	}
	slices.SortStableFunc(sorted, func(a, b keyed) int { return compareKeys(a.key, b.key) })
	for i := range sorted {
		list[i] = sorted[i].element
	}
	return nil
}

// compareKeys orders numbers by their size and texts as people do; what is missing comes last.
func compareKeys(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(order(a != nil), order(b != nil))
	}
	x, number := asNumber(a)
	if y, also := asNumber(b); number && also {
		return cmp.Compare(x, y)
	}
	return natural(textOf(a), textOf(b))
}

func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

func asNumber(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// natural orders texts so that cluster-2 comes before cluster-10.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n == 0 || m == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		u, v := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
		if c := cmp.Or(cmp.Compare(len(u), len(v)), strings.Compare(u, v)); c != 0 {
			return c
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// SelectorFlag is the flag -l: labels that objects must have.
type SelectorFlag struct{ selector labels.Selector }

// AddFlag adds -l to cmd.
func (s *SelectorFlag) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(s, "selector", "l", "list only objects with these `labels`, such as app=reviews,version!=v1")
	_ = cmd.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// String is part of pflag.Value.
func (s *SelectorFlag) String() string {
	if s == nil || s.selector == nil {
		return ""
	}
	return s.selector.String()
}

// Type is part of pflag.Value.
func (s *SelectorFlag) Type() string { return "labels" }

// Set is part of pflag.Value.
func (s *SelectorFlag) Set(text string) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return fmt.Errorf("%w; write labels as kubectl does, such as app=reviews,version in (v1, v2)", err)
	}
	s.selector = selector
	return nil
}

// Matches reports whether an object with these labels is selected; without -l, each one is.
func (s *SelectorFlag) Matches(has map[string]string) bool {
	return s.selector == nil || s.selector.Matches(labels.Set(has))
}
