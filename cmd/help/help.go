// Package help is the command `meshctl help`, and the help topics.
//
//   - help.go: the command
//   - topics.go: the topics, and the rows that a topic may have
//   - paint.go: a topic as plain text and as Markdown
//   - gitops.go: the topic gitops, and the files that it prints
//   - relay.go, roles.go: the topics of these names
//   - glossary.go: the rows of the topic glossary
//   - differences.go: the rows of the topic gloo-mesh, which differences.yaml has
//   - codes.go: the pages of codes of issues, and the rows of the topic codes, which codes.yaml has
package help

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// The formats of -o.
const (
	formatText     cmdutil.Format = "text"
	formatMarkdown cmdutil.Format = "markdown"
)

const long = `Prints the help of a command, a help topic, or what the code of an issue means.

A topic with many rows can be searched: words after its name print only the
rows that contain all of these words. After "schema" they are a command, and
after "gitops" and "monitoring" the name of a file.`

const example = `  # Show the help of a command
  meshctl help describe destination

  # Show what each mesh can express, or only what concerns retries
  meshctl help meshes
  meshctl help meshes retries

  # Say what an issue means, how it comes about, and what to do
  meshctl help FieldConflict

  # Print a topic as Markdown
  meshctl help gloo-mesh -o markdown

  # Describe the fields of what a command prints with -o json
  meshctl help schema cluster list`

// NewCmd returns the command.
func NewCmd(f *cmdutil.Factory) *cobra.Command {
	output := cmdutil.OutputFlag{}
	cmd := &cobra.Command{
		Use:     "help [COMMAND | CODE | TOPIC [WORD...]]",
		Short:   "Show the help of a command or a topic",
		Long:    long,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if t := topicOf(args[0]); t != nil {
					if t.name == SchemaTopic && len(args) > 1 {
						if output.Format == formatMarkdown {
							return cmdutil.FlagErrorf("a schema is JSON; -o markdown is for the list of commands that have one")
						}
						return printSchema(f.Streams.Out, cmd.Root(), args[1:])
					}
					if t.name == SchemaTopic {
						t.intro += schemaList(cmd.Root())
					}
					if len(t.files) > 0 && len(args) > 1 {
						return t.printFile(f.Streams, args[1:])
					}
					return t.print(f.Streams, args[1:], output.Format)
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if isCommand := err == nil && len(rest) == 0; !isCommand && len(args) == 1 {
				if code, theme := codeOf(args[0]); code != nil {
					return code.print(f.Streams, theme, output.Format)
				}
			}
			if cmd.Flags().Changed("output") {
				return cmdutil.FlagErrorf("--output needs a help topic or the code of an issue: %s", strings.Join(topicNames(), ", "))
			}
			if err != nil || len(rest) > 0 {
				return cmdutil.UnknownCommand(found, append(rest, args...)[0], true, moreWords(args)...)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: complete,
	}
	output.AddFlag(cmd, formatText, formatMarkdown)
	return cmd
}

// moreWords are what the first word may be beside commands and topics.
func moreWords(args []string) []string {
	if len(args) == 1 {
		return codeNames()
	}
	return nil
}

// complete offers the commands and topics below the ones that are typed, and codes of issues.
func complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && args[0] == SchemaTopic {
		return completeSchema(cmd.Root(), args[1:]), cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 1 {
		if t := topicOf(args[0]); t != nil {
			return t.fileNames(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	var names []string
	if len(args) == 0 {
		names = completeCodes(typed)
	}
	if found, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
		for _, c := range found.Commands() {
			if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// NewTopics returns the topics as commands that cannot run, which cobra lists
// as additional help topics.
func NewTopics() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range topics() {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, Long: t.intro})
	}
	return out
}

// Args turns `meshctl TOPIC`, as cobra lists the topics, into `meshctl help
// TOPIC`. Other arguments of the program stay as they are.
func Args(args []string) []string {
	if len(args) > 0 && topicOf(args[0]) != nil {
		return append([]string{"help"}, args...)
	}
	return args
}
