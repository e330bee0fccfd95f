package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/watch"
)

// maxAdvised bounds how many contexts Advise names.
const maxAdvised = 5

// Advise adds to the error of a cluster without a management plane which contexts of the kubeconfig
// lead to one.
func Advise(ctx context.Context, f *Factory, kubeconfig string, err error) error {
	var missing *watch.MissingCRDsError
	if !errors.As(err, &missing) || !missing.NoPlane() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reading.ProbeTimeout)
	defer cancel()
	var mu sync.Mutex
	var found []string
	var group errgroup.Group
	group.SetLimit(16)
	for _, c := range ContextConfigs(f, kubeconfig) {
		group.Go(func() error {
			if reading.HasCRDs(ctx, c.Config) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, c.Name)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	if len(found) == 0 {
		return NotFoundErrorf("%w; no context of the kubeconfig leads to one that answers", err)
	}
	slices.Sort(found)
	return NotFoundErrorf("%w; these contexts lead to one: %s", err, strings.Join(found[:min(len(found), maxAdvised)], ", "))
}
