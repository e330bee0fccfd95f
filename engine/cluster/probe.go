package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// proofTimeout bounds one proof of a candidate.
	proofTimeout = time.Minute
	// parallelLists bounds the lists that are tried at once on one API server.
	parallelLists = 8
)

// probe returns nil if the candidate is as good as the client in use: its server accepts
// it, is the same cluster, and lets it list what that one may list. It is compared with
// that one and not with the rules of this version: a newer version reads kinds which no
// credential of the cluster may list until the cluster is registered again.
func (c *candidate) probe(ctx context.Context, current *Client) error {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	if err := c.client.guard.check(ctx); err != nil {
		return err
	}
	kinds := snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write)
	_, missing, err := tryLists(ctx, c.client, kinds)
	if err != nil {
		return err
	}
	if len(missing) > 0 && len(missing) < len(kinds) { // who may list nothing is refused anyway
		// An error means that the one in use is worth nothing any more.
		missing, _, _ = tryLists(ctx, current, missing)
	}
	var less []string
	if c.seen != "" && !c.identified.Load() {
		less = append(less, "get namespaces/"+metav1.NamespaceSystem)
	}
	for _, k := range missing {
		less = append(less, "list "+k.Info().Resource)
	}
	if len(less) > 0 {
		return &LessError{Server: c.stored.Server, Missing: less}
	}
	return nil
}

// tryLists tries to list the kinds and returns those that may be listed and those that may
// not; a list that fails for another reason is neither. An error says that the server does
// not accept the credential.
func tryLists(ctx context.Context, client *Client, kinds []snapshot.Kind) (may, mayNot []snapshot.Kind, err error) {
	lister, err := metadata.NewForConfig(client.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("building a client: %w", err)
	}
	results := make([]error, len(kinds))
	var group errgroup.Group
	group.SetLimit(parallelLists)
	for i, k := range kinds {
		group.Go(func() error {
			options := metav1.ListOptions{Limit: 1}
			if names := engine.ReadableNames(k); len(names) > 0 {
				options.FieldSelector = fields.OneTermEqualSelector("metadata.name", names[0]).String()
			}
			_, results[i] = lister.Resource(k.GroupVersionResource()).List(ctx, options)
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	for i, k := range kinds {
		switch err := results[i]; {
		case err == nil, kube.IsAbsent(err):
			may = append(may, k)
		case apierrors.IsForbidden(err):
			mayNot = append(mayNot, k)
		case apierrors.IsUnauthorized(err):
			return nil, nil, fmt.Errorf("listing %s: %w", k.Info().Resource, err)
		}
	}
	return may, mayNot, nil
}

// LessError says that a credential may not do what the one in use may.
type LessError struct {
	Server string
	// Missing are "VERB RESOURCE[/NAME]".
	Missing []string
}

func (e *LessError) Error() string {
	const few = 3
	text := strings.Join(e.Missing[:min(few, len(e.Missing))], ", ")
	if more := len(e.Missing) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the new credential is not allowed to %s at %s, and the current one is; run `meshctl cluster register` again", text, e.Server)
}

// NotUsed is that of OtherClusterError.
func (e *LessError) NotUsed() {}
