package check

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
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
	type outcome struct {
		version string
		err     error
	}
	var install outcome
	register := make([]outcome, len(candidates))
	group := errgroup.Group{}
	group.SetLimit(parallelDials)
	group.Go(func() error {
		install.version, install.err = registration.CheckInstall(ctx, registration.InstallOptions{
			Config: o.Config, Context: o.Context, Namespace: o.Namespace, Timeout: o.Timeout, Image: "meshctl",
		})
		return nil
	})
	for i, c := range candidates {
		group.Go(func() error {
			register[i].version, register[i].err = registration.CheckRegister(ctx, registration.Options{
				// A name that no cluster has: whether another is taken is checked when it is known.
				Name: "check-pre", RemoteConfig: c.Config, RemoteContext: c.Context, MgmtConfig: o.Config, MgmtContext: o.Context,
				MgmtNamespace: o.Namespace, Timeout: o.Timeout,
			})
			return nil
		})
	}
	_ = group.Wait() // the outcomes have the errors
	categories := []explain.CheckCategory{before("Management cluster", "install", "meshctl can be installed", install.version, install.err)}
	for i, c := range candidates {
		unread, err := withoutManagement(register[i].err)
		category := before("Cluster of context "+c.Context, "register/"+c.Context, "it can be registered", register[i].version, err)
		if can := &category.Checks[len(category.Checks)-1]; unread && can.Result == explain.CheckOK {
			can.Result, can.Because = explain.CheckSkipped, categories[0].Checks[0].ID
		}
		categories = append(categories, category)
	}
	return explain.NewCheckupOf(categories...)
}

// withoutManagement leaves out of what came of a registration that the management cluster cannot be
// read, which has a check of its own, and reports whether that was in it.
func withoutManagement(err error) (unread bool, others error) {
	var left []error
	for _, one := range causes(err) {
		var u *registration.UnreachableError
		if errors.As(one, &u) && u.Management {
			unread = true
			continue
		}
		left = append(left, one)
	}
	return unread, errors.Join(left...)
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
		answers.Result, answers.Message, answers.Hint = explain.CheckFailure, splitHint(err), unreadHint(err)
		can.Result, can.Because = explain.CheckSkipped, answers.ID
		out.Checks = []explain.Check{answers, can}
	default:
		out.Checks = []explain.Check{answers}
		for _, one := range causes(err) {
			failed := can
			failed.Result = explain.CheckFailure
			var denied *registration.PermissionError
			if errors.As(one, &denied) {
				failed.Message = denied.Server + ": you may not " + strings.Join(denied.Missing, ", ")
				failed.Hint = "ask its administrator for these permissions, or use a context that has them"
			} else {
				reason := snapshot.ReasonOf("", one)
				failed.Message, failed.Hint = reason.What, reason.Hint
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
	if err == nil {
		return nil
	}
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
