package cmdutil

import (
	"context"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Losses are what is assumed not to answer, by the names that people give: KIND/NAME, or NAME of any kind.
func Losses(index *explain.Index, names []string) ([]explain.Loss, error) {
	var out []explain.Loss
	for _, name := range names {
		found := explain.FindLosses(index, name)
		switch len(found) {
		case 1:
			out = append(out, found[0])
			continue
		case 0:
			return nil, lossNotFound(index, name)
		}
		words := make([]string, len(found))
		for i := range found {
			words[i] = lossName(&found[i])
		}
		return nil, FlagErrorf("%s is ambiguous; choose one of: %s", name, strings.Join(words, ", "))
	}
	return out, nil
}

// lossName is a loss as it is written in a flag.
func lossName(l *explain.Loss) string {
	name := string(l.Kind) + "/" + l.Name
	if l.Subset != "" {
		name += ":" + l.Subset
	}
	return name
}

// lossNotFound says what there is instead.
func lossNotFound(index *explain.Index, name string) error {
	names := lossNames(index)
	if word := snapshot.Nearest(name, names); word != "" {
		return NotFoundErrorf("%q is nothing that can be lost; did you mean %s?", name, word)
	}
	return NotFoundErrorf("%q is nothing that can be lost: no cluster, region, service, workload or SERVICE:SUBSET has this name; meshctl describe clusters, destinations and workloads list them", name)
}

// lossNames are all names without a kind.
func lossNames(index *explain.Index) []string {
	names := append(explain.Regions(index), explain.Subsets(index)...)
	for _, kind := range []snapshot.Kind{snapshot.KubernetesCluster, snapshot.Destination, snapshot.Workload} {
		for _, ref := range index.Refs(kind) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// LossNames lists what can be lost, for the shell.
func (s *Source) LossNames(ctx context.Context) []string {
	index := s.complete(ctx)
	if index == nil {
		return nil
	}
	return lossNames(index)
}
