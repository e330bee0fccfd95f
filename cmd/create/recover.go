package create

import (
	"cmp"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// savedAnswers are the answers of an interrupted run.
type savedAnswers struct {
	// Kind of the object that the answers are about.
	Kind      string          `json:"kind"`
	Name      string          `json:"name,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Answers   wizards.Answers `json:"answers"`
}

func lower(kind snapshot.Kind) string { return strings.ToLower(kind.String()) }

// SaveAnswers saves the answers, if there are any.
func (o *Options) SaveAnswers() {
	if len(o.Answers) == 0 {
		return
	}
	o.Flags.SaveAnswers(o.Streams, savedAnswers{Kind: o.Form.Kind.String(), Name: o.Name, Namespace: o.Namespace, Answers: o.Answers}, o.BaseCommand())
}

// LoadAnswers reads saved answers; flags of this run take precedence.
func (o *Options) LoadAnswers() error {
	var k savedAnswers
	if err := o.Flags.LoadAnswers(&k); err != nil {
		return err
	}
	if k.Kind != o.Form.Kind.String() {
		return cmdutil.FlagErrorf("%s contains the answers for a %s; use: meshctl %s %s --recover %s", o.Flags.Recover, k.Kind, cmp.Or(o.Verb, "create"), strings.ToLower(k.Kind), o.Flags.Recover)
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
