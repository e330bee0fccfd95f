package cmdutil

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit is an exit code that means more to a command than `meshctl help exit-codes` says.
type Exit struct {
	Code  int
	Means string
}

// exitPrefix begins the annotations of a command with such codes.
const exitPrefix = "meshctl.io/exit-"

// ExitCodes documents the codes that are special to a command, in its help.
func ExitCodes(cmd *cobra.Command, exits ...Exit) {
	var b strings.Builder
	b.WriteString("\n\nExit codes:\n\n")
	for _, exit := range exits {
		annotate(cmd, exitPrefix+strconv.Itoa(exit.Code), exit.Means)
		Painter{Width: 80}.Paragraph(&b, fmt.Sprintf("  %-3d  ", exit.Code), "       ", exit.Means)
	}
	b.WriteString("\nThe others are in: meshctl help exit-codes")
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += b.String()
}

// ExitsOf are the codes that ExitCodes documents, ascending.
func ExitsOf(cmd *cobra.Command) []Exit {
	var out []Exit
	for _, key := range slices.Sorted(maps.Keys(cmd.Annotations)) {
		code, found := strings.CutPrefix(key, exitPrefix)
		if number, err := strconv.Atoi(code); found && err == nil {
			out = append(out, Exit{number, cmd.Annotations[key]})
		}
	}
	return out
}

func annotate(cmd *cobra.Command, key, value string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[key] = value
}
