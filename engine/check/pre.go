package check

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
)

// Candidate is a cluster that may be registered.
type Candidate struct {
	// Context is its name in the kubeconfig.
	Context string
	Config  *rest.Config
}

// Pre checks, before anything is written, whether meshctl can be installed in the management cluster
// and the candidates can be registered there: with the checks that `meshctl install` and `meshctl
// cluster register` make.
func Pre(ctx context.Context, o Options, candidates []Candidate) *explain.Checkup {
	categories := make([]explain.CheckCategory, 1+len(candidates))
	group := errgroup.Group{}
	group.SetLimit(parallelDials)
	group.Go(func() error {
		version, err := registration.CheckInstall(ctx, registration.InstallOptions{
			Config: o.Config, Context: o.Context, Namespace: o.Namespace, Timeout: o.Timeout, Image: "meshctl",
		})
		categories[0] = before("Management cluster", "install", "meshctl can be installed", version, err)
		return nil
	})
	for i, c := range candidates {
		group.Go(func() error {
			version, err := registration.CheckRegister(ctx, registration.Options{
				// A name that no cluster has: whether another is taken is checked when it is known.
				Name: "check-pre", RemoteConfig: c.Config, RemoteContext: c.Context, MgmtConfig: o.Config, MgmtContext: o.Context,
				MgmtNamespace: o.Namespace, Timeout: o.Timeout,
			})
			categories[i+1] = before("Cluster of context "+c.Context, "register/"+c.Context, "it can be registered", version, err)
			return nil
		})
	}
	_ = group.Wait()
	return explain.NewCheckupOf(categories...)
}

// before makes checks of what came of a preflight.
func before(title, id, able, version string, err error) explain.CheckCategory {
	answers := explain.Check{ID: id + "/answers", Description: "its API server answers", Result: explain.CheckOK}
	if version != "" {
		answers.Message = "Kubernetes " + version
	}
	can := explain.Check{ID: id, Description: able, Result: explain.CheckOK}
	out := explain.CheckCategory{Title: title}
	switch {
	case err == nil:
		out.Checks = []explain.Check{answers, can}
	case version == "" && unreachable(err):
		answers.Result, answers.Message, answers.Hint = explain.CheckFailure, splitHint(err), unreadHint
		can.Result, can.Because = explain.CheckSkipped, answers.ID
		out.Checks = []explain.Check{answers, can}
	default:
		out.Checks = []explain.Check{answers}
		for _, one := range causes(err) {
			failed := can
			failed.Result, failed.Message = explain.CheckFailure, strings.ReplaceAll(one.Error(), "\n  ", " ")
			var denied *registration.PermissionError
			if errors.As(one, &denied) {
				failed.Message = denied.Server + ": you may not " + strings.Join(denied.Missing, ", ")
				failed.Hint = "ask its administrator for these permissions, or use a context that has them"
			} else if at := strings.LastIndex(failed.Message, "; "); at > 0 {
				failed.Message, failed.Hint = failed.Message[:at], failed.Message[at+2:]
			}
			out.Checks = append(out.Checks, failed)
		}
	}
	return out
}

func unreachable(err error) bool {
	var u *registration.UnreachableError
	return errors.As(err, &u)
}

// causes are the errors that were joined to one.
func causes(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, causes(one)...)
	}
	return out
}
