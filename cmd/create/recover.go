package create

import (
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

// saveAnswers saves the answers, if there are any.
func (o *Options) saveAnswers() {
	if len(o.Answers) == 0 {
		return
	}
	o.Flags.SaveAnswers(o.Streams, savedAnswers{Kind: o.Form.Kind.String(), Name: o.Name, Namespace: o.Namespace, Answers: o.Answers}, o.baseCommand())
}

// loadAnswers reads saved answers; flags of this run take precedence.
func (o *Options) loadAnswers() error {
	var k savedAnswers
	if err := o.Flags.LoadAnswers(&k); err != nil {
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
