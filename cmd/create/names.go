package create

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// fullNames replaces what people call services in answers, such as reviews, by name.namespace.cluster, as `meshctl describe` finds them.
func fullNames(catalog *wizards.Catalog, form *wizards.Form, answers wizards.Answers) error {
	for i := range form.Fields {
		field := &form.Fields[i]
		values := slices.Clone(answers[field.Flag])
		for j, text := range values {
			name, rest, more := strings.Cut(text, ",")
			if !field.NamesServices() || name == "" || strings.ContainsAny(name, "=\"") || strings.Count(name, ".") >= 2 {
				continue
			}
			ref, err := cmdutil.Pick(catalog.Index(), snapshot.Destination, name)
			if err != nil {
				return cmdutil.FlagErrorf("--%s: %w", field.Flag, err)
			}
			called := catalog.Index().Called(ref)
			if len(called) == 0 {
				return cmdutil.FlagErrorf("--%s: %s is no Service of a cluster; name one as NAME.NAMESPACE.CLUSTER", field.Flag, name)
			}
			if values[j] = called[len(called)-1]; more {
				values[j] += "," + rest
			}
		}
		if len(values) > 0 {
			answers[field.Flag] = values
		}
	}
	return nil
}
