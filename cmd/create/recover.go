package create

import (
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// kept are the answers of a run that did not come to its end.
type kept struct {
	// Kind of the object that was asked about.
	Kind      string          `json:"kind"`
	Name      string          `json:"name,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Answers   wizards.Answers `json:"answers"`
}

func lower(kind snapshot.Kind) string { return strings.ToLower(kind.String()) }

// keep keeps the answers, if there are any.
func (o *Options) keep() {
	if len(o.Answers) == 0 {
		return
	}
	o.Flags.Keep(o.Streams, kept{Kind: o.Form.Kind.String(), Name: o.Name, Namespace: o.Namespace, Answers: o.Answers}, o.where())
}

// recall reads kept answers; flags of this run count more.
func (o *Options) recall() error {
	var k kept
	if err := o.Flags.Recall(&k); err != nil {
		return err
	}
	if k.Kind != o.Form.Kind.String() {
		return cmdutil.FlagErrorf("%s contains the answers for a %s; use: meshctl create %s --recover %s", o.Flags.Recover, k.Kind, strings.ToLower(k.Kind), o.Flags.Recover)
	}
	for flag, values := range k.Answers {
		if _, given := o.Answers[flag]; !given {
			o.Answers[flag] = values
		}
	}
	if o.Name == "" {
		o.Name = k.Name
	}
	if k.Namespace != "" {
		o.Namespace = k.Namespace
	}
	return nil
}
