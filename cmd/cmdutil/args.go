package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/meshctl/meshctl/engine/snapshot"
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
			missing := names[len(args):need]
			verb := "is"
			if len(missing) > 1 {
				verb = "are"
			}
			return FlagErrorf("%s: %s %s required; usage: %s", cmd.CommandPath(), strings.Join(missing, " and "), verb, cmd.UseLine())
		case len(args) > len(names):
			return FlagErrorf("%s: unexpected argument %q; usage: %s", cmd.CommandPath(), args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// UnknownCommand is the error for a word that is not a command below parent. It
// suggests a similar one, or that which other programs have under this name; help
// topics count only if topics is true. More are other words that would do. Where
// nothing is similar, it names the commands that a group has.
func UnknownCommand(parent *cobra.Command, word string, topics bool, more ...string) error {
	known := slices.Clone(more)
	meant := ""
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || topics && c.IsAdditionalHelpTopicCommand() {
			known = append(append(known, c.Name()), c.Aliases...)
		}
		if slices.Contains(c.SuggestFor, word) {
			meant = c.Name()
		}
	}
	text := fmt.Sprintf("unknown command %q for %q", word, parent.CommandPath())
	if similar := cmp.Or(meant, snapshot.Nearest(word, known)); similar != "" {
		text += fmt.Sprintf("; did you mean %q?", similar)
	} else if names := commandsOf(parent); len(names) > 0 {
		text += "; choose one of: " + strings.Join(names, ", ")
	}
	return &FlagError{Err: errors.New(text)}
}

// commandsOf are the commands of a group, in its order; none of the root, whose help groups them.
func commandsOf(group *cobra.Command) (names []string) {
	if !group.HasParent() {
		return nil
	}
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// UnknownFlag adds a similar flag of the command to the error for a flag that it
// does not have. If the command only groups others, what is wrong is the word before
// the flag, or that there is none. Of a time that cannot be read, it says how one is
// written. Other errors of parsing flags become FlagErrors as they are.
func UnknownFlag(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return FlagErrorf("--%s %q: want a time with its unit, for example 30s, 15m or 1h", invalid.GetFlag().Name, invalid.GetValue())
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &FlagError{Err: err}
	}
	if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
		return UnknownCommand(cmd, words[0], false)
	}
	if unknown.GetSpecifiedShortnames() == "" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := unknown.GetSpecifiedName()
		similar := snapshot.Nearest(name, known)
		if last := name[strings.LastIndexByte(name, '-')+1:]; similar == "" && slices.Contains(known, last) {
			similar = last // such as --kube-context for --context
		}
		if similar != "" {
			return FlagErrorf("%w; did you mean --%s?", err, similar)
		}
	}
	if names := commandsOf(cmd); len(names) > 0 {
		return FlagErrorf("%w; first choose one of the commands: %s", err, strings.Join(names, ", "))
	}
	return &FlagError{Err: err}
}
