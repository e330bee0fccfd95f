package create

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

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

// keep writes the answers to a file that only the user can read, and says how
// to go on.
func (o *Options) keep(s *wizards.Session) {
	if len(s.Answers) == 0 {
		return
	}
	path, err := o.write(s)
	if err != nil {
		_, _ = fmt.Fprintf(o.Streams.Err, "The answers could not be kept: %v\n", err)
		return
	}
	_, _ = fmt.Fprintf(o.Streams.Err, "\nThe answers are kept in %s. To go on with them:\n\n  %s\n\n", path, wizards.Quote(append(o.where(), "--recover", path)))
}

func (o *Options) write(s *wizards.Session) (string, error) {
	data, err := yaml.Marshal(kept{Kind: o.Form.Kind.String(), Name: s.Name, Namespace: s.Namespace, Answers: s.Answers})
	if err != nil {
		return "", err
	}
	if o.Recover != "" {
		return o.Recover, os.WriteFile(o.Recover, data, 0o600)
	}
	// CreateTemp gives mode 0600.
	file, err := os.CreateTemp("", "meshctl-answers-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return file.Name(), err
}

// recall reads kept answers; flags of this run count more.
func (o *Options) recall() error {
	data, err := os.ReadFile(o.Recover)
	if err != nil {
		return cmdutil.NotFoundErrorf("answers: %w", err)
	}
	var k kept
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		return fmt.Errorf("answers in %s cannot be read: %w", o.Recover, err)
	}
	if k.Kind != o.Form.Kind.String() {
		return cmdutil.FlagErrorf("the answers in %s are about a %s: meshctl create %s --recover %s", o.Recover, k.Kind, strings.ToLower(k.Kind), o.Recover)
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
