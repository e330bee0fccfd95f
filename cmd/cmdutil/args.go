package cmdutil

import (
	"strings"

	"github.com/spf13/cobra"
)

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return FlagErrorf("%s takes no arguments, but got %q", cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// Args asks for one argument for each name; a last name in brackets, such as
// "[NAME]", may be left out.
func Args(names ...string) cobra.PositionalArgs {
	need := len(names)
	if need > 0 && strings.HasPrefix(names[need-1], "[") {
		need--
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < need:
			return FlagErrorf("%s: say which %s; usage: %s", cmd.CommandPath(), strings.Join(names[len(args):need], " and "), cmd.UseLine())
		case len(args) > len(names):
			return FlagErrorf("%s: %q is one argument too many; usage: %s", cmd.CommandPath(), args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// UnknownCommand is the error for a word that is no command of the parent at
// path; it suggests a similar one of those that parent has.
func UnknownCommand(path string, parent *cobra.Command, word string) error {
	parent.SuggestionsMinimumDistance = 2
	if similar := parent.SuggestionsFor(word); len(similar) > 0 {
		return FlagErrorf("%s has no command %q; did you mean %q?", path, word, similar[0])
	}
	return FlagErrorf("%s has no command %q", path, word)
}
