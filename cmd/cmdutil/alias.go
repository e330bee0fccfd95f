package cmdutil

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AlsoOfManagement lets commands take both names of the flags that say where the management plane is: those that have
// --context also take --mgmt-context, and the other way round, and so with --namespace and --mgmt-namespace. A command
// that has both means different things by them. Commands below the excepted ones, by name, are about other clusters.
func AlsoOfManagement(root *cobra.Command, except ...string) {
	for _, cmd := range root.Commands() {
		if slices.Contains(except, cmd.Name()) {
			continue
		}
		AlsoOfManagement(cmd)
		for _, pair := range [][3]string{{"context", "mgmt-context", ""}, {"namespace", "mgmt-namespace", "n"}} {
			short, long := cmd.Flags().Lookup(pair[0]), cmd.Flags().Lookup(pair[1])
			switch {
			case short != nil && long == nil:
				alsoCalled(cmd, pair[0], pair[1], "")
			case short == nil && long != nil:
				alsoCalled(cmd, pair[1], pair[0], pair[2])
			}
		}
	}
}

// alsoCalled gives a flag of cmd, which has been added, a second name and, unless that is empty, a letter. The help shows
// only the first name. Both together with different values are an error: one of them would be ignored.
func alsoCalled(cmd *cobra.Command, name, other, letter string) {
	flag := cmd.Flags().Lookup(name)
	both := &calledTwice{value: flag.Value}
	flag.Value = &calledFlag{both: both, name: name, other: other}
	second := cmd.Flags().VarPF(&calledFlag{both: both, name: other, other: name, of: flag}, other, letter, flag.Usage)
	second.Hidden = true
	if complete, ok := cmd.GetFlagCompletionFunc(name); ok {
		_ = cmd.RegisterFlagCompletionFunc(other, complete)
	}
}

// calledTwice is the value of a flag with two names.
type calledTwice struct {
	value pflag.Value
	// by is the name with which it was set; empty if it was not.
	by string
}

// calledFlag is one of its names.
type calledFlag struct {
	both        *calledTwice
	name, other string
	// of is the flag of the first name, for the second one.
	of *pflag.Flag
}

// String is part of pflag.Value.
func (c *calledFlag) String() string {
	if c == nil || c.both == nil {
		return ""
	}
	return c.both.value.String()
}

// Type is part of pflag.Value.
func (c *calledFlag) Type() string { return c.both.value.Type() }

// Set is part of pflag.Value.
func (c *calledFlag) Set(text string) error {
	if c.both.by == c.other && c.both.value.String() != text {
		return fmt.Errorf("it is the same as --%s, which is %q; leave one of them out", c.other, c.both.value.String())
	}
	c.both.by = c.name
	if c.of != nil {
		c.of.Changed = true // also where flags exclude each other
	}
	return c.both.value.Set(text)
}
