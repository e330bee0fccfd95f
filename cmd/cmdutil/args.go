package cmdutil

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoArgs rejects arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return FlagErrorf("%s takes no arguments, but got %q", cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// Args requires one argument for each name; the last names in brackets, such as
// "[NAME]", are optional.
func Args(names ...string) cobra.PositionalArgs {
	need := len(names)
	for need > 0 && strings.HasPrefix(names[need-1], "[") {
		need--
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < need:
			return FlagErrorf("%s: %s is required; usage: %s", cmd.CommandPath(), strings.Join(names[len(args):need], " and "), cmd.UseLine())
		case len(args) > len(names):
			return FlagErrorf("%s: unexpected argument %q; usage: %s", cmd.CommandPath(), args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// UnknownCommand is the error for a word that is not a command below parent. It
// suggests a similar one; help topics count only if topics is true.
func UnknownCommand(parent *cobra.Command, word string, topics bool) error {
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || topics && c.IsAdditionalHelpTopicCommand() {
			known = append(append(known, c.Name()), c.Aliases...)
		}
	}
	text := fmt.Sprintf("unknown command %q for %q", word, parent.CommandPath())
	if similar := Similar(word, known); similar != "" {
		text += fmt.Sprintf("; did you mean %q?", similar)
	}
	return &FlagError{Err: errors.New(text)}
}

// UnknownFlag adds a similar flag of the command to the error for a flag that it
// does not have. Other errors of parsing flags become FlagErrors as they are.
func UnknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if similar := Similar(unknown.GetSpecifiedName(), known); similar != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, similar)
		}
	}
	return &FlagError{Err: err}
}

// maxMistakes is how many letters a word may differ from the one that was meant.
const maxMistakes = 2

// Similar is the known word nearest to word: among those that differ from it in at most two letters, or
// begin with it. It is empty if there is none.
func Similar(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 0
	for _, name := range known {
		lower := strings.ToLower(name)
		d := distance(word, lower)
		if d > maxMistakes && !strings.HasPrefix(lower, word) {
			continue
		}
		if best == "" || d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters must be added, left out or replaced to make one word the other
// (Levenshtein).
func distance(a, b string) int {
	before := make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		now := make([]int, len(b)+1)
		now[0] = i + 1
		for j := range len(b) {
			replaced := before[j]
			if a[i] != b[j] {
				replaced++
			}
			now[j+1] = min(replaced, before[j+1]+1, now[j]+1)
		}
		before = now
	}
	return before[len(b)]
}
