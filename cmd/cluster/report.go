package cluster

import (
	"fmt"
	"io"
	"strconv"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// PrintReport prints what was done, and the notes for the user.
func PrintReport(s *cmdutil.Streams, output *cmdutil.OutputFlag, report *registration.Report) error {
	for _, note := range report.Notes {
		say(s, "Note: %s.", note)
	}
	return output.Print(s.Out, report, func(out io.Writer) error {
		table := cmdutil.Table{Header: []string{"ACTION", "CLUSTER", "KIND", "NAME"}}
		for _, change := range report.Changes {
			if change.Action == registration.Unchanged {
				continue
			}
			table.Add(string(change.Action), change.Server, change.Kind, changed(change))
		}
		if len(table.Rows) > 0 {
			if err := table.Print(out); err != nil {
				return err
			}
		}
		return printLeftovers(s, out, report.Leftovers)
	})
}

// changed names the object, or says how many.
func changed(change registration.Change) string {
	switch {
	case change.Name == "":
		return strconv.Itoa(change.Count) + " objects"
	case change.Namespace == "":
		return change.Name
	}
	return change.Namespace + "/" + change.Name
}

func printLeftovers(s *cmdutil.Streams, out io.Writer, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	say(s, "When the cluster can be reached again, clean it with these commands:")
	for _, command := range commands {
		if _, err := fmt.Fprintln(out, cmdutil.Clean(command)); err != nil {
			return fmt.Errorf("print commands: %w", err)
		}
	}
	return nil
}
