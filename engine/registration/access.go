package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

// parallelReviews bounds the questions asked of one API server at once.
const parallelReviews = 16

// grantTimeout bounds the wait until an API server's authorizer knows a role
// that was just written: milliseconds, unless it is very busy.
const grantTimeout = 15 * time.Second

// access is one thing to be allowed: verb on resource[/subresource].
type access struct {
	verb, group, resource, name, namespace string
}

// String is "create clusterroles.rbac.authorization.k8s.io/NAME in namespace NS".
func (a access) String() string {
	s := a.verb + " " + a.resource
	if a.group != "" {
		s += "." + a.group
	}
	if a.name != "" {
		s += "/" + a.name
	}
	if a.namespace != "" {
		s += " in namespace " + a.namespace
	}
	return s
}

// each is the same access with each of the verbs.
func (a access) each(verbs ...string) []access {
	out := make([]access, len(verbs))
	for i, verb := range verbs {
		out[i] = a
		out[i].verb = verb
	}
	return out
}

// require fails with a *PermissionError that lists all that is not allowed.
func (s *server) require(ctx context.Context, wanted []access) error {
	missing, err := missingAccess(ctx, s.clientset, wanted)
	if err != nil {
		return fmt.Errorf("%s: asking what you may do: %w", s.label, err)
	}
	if len(missing) > 0 {
		return &PermissionError{Server: s.label, Missing: missing}
	}
	return nil
}

// missingAccess asks the API server about each access and returns those that
// it denies, ascending.
func missingAccess(ctx context.Context, clientset kube.Clientset, wanted []access) ([]string, error) {
	denied := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReviews)
	for i, a := range wanted {
		group.Go(func() error {
			ok, err := allowed(ctx, clientset, a)
			if !ok {
				denied[i] = a.String()
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err // allowed wraps
	}
	slices.Sort(denied)
	denied = slices.Compact(denied)
	return slices.DeleteFunc(denied, func(s string) bool { return s == "" }), nil
}

func allowed(ctx context.Context, clientset kube.Clientset, a access) (bool, error) {
	resource, subresource, _ := strings.Cut(a.resource, "/")
	review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: resource, Subresource: subresource, Name: a.name, Namespace: a.namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("may it %s: %w", a, err)
	}
	return review.Status.Allowed, nil
}

// ruleAccesses spells rules out, verb by verb, over all namespaces.
func ruleAccesses(rules []rbacv1.PolicyRule) []access {
	var out []access
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				a := access{group: group, resource: resource}
				if len(rule.ResourceNames) == 0 {
					out = append(out, a.each(rule.Verbs...)...)
				}
				for _, a.name = range rule.ResourceNames {
					out = append(out, a.each(rule.Verbs...)...)
				}
			}
		}
	}
	return out
}

// grantAccess is what a caller needs to hand out what a role grants: nothing if the
// verbs escalate and bind allow it, else all of it.
func (s *server) grantAccess(ctx context.Context, role access, granted []access) ([]access, error) {
	missing, err := missingAccess(ctx, s.clientset, role.each("escalate", "bind"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: asking what you may do: %w", s.label, err)
	case len(missing) == 0:
		return nil, nil
	}
	return granted, nil
}

// verifyGrants waits until the credential may do all that the role grants.
func verifyGrants(ctx context.Context, name string, c *cluster.Credential, wanted []access) error {
	client, clientset, err := cluster.Connect(name, c, "")
	if err != nil {
		return err
	}
	defer client.Close()
	var missing []string
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, grantTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		missing, err = missingAccess(ctx, clientset, wanted)
		return err == nil && len(missing) == 0, err
	})
	if err != nil && len(missing) > 0 {
		return &PermissionError{Server: "the new credential of cluster " + name, Missing: missing}
	}
	if err != nil {
		return fmt.Errorf("credential of cluster %s: asking what it may do: %w", name, err)
	}
	return nil
}
