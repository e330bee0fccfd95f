package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
)

// enforceTimeout bounds the time from a policy to the Istio objects, which is seconds on
// an idle machine, and a minute if proxies that run get another root before.
const enforceTimeout = 10 * time.Minute

func (u *up) applyVirtualMesh(ctx context.Context) error {
	return u.apply(ctx, manifests.SharedVirtualMesh())
}

func (u *up) applyPolicies(ctx context.Context) error { return u.apply(ctx, manifests.Policies()) }

func (u *up) apply(ctx context.Context, documents []byte) error {
	client, err := u.clusters[0].Client()
	if err != nil {
		return err
	}
	return client.ApplyYAML(ctx, documents)
}

// rootSettles is how long after a root is established a pod has to be created, so that agents know by the clocks of two machines that
// it started after that (settled in certs/verify, and a second more). They restart those that are created sooner.
const rootSettles = 12 * time.Second

// join applies the VirtualMesh, and waits until its meshes have certificates of the common root. While no proxy runs, that takes
// seconds: each proxy that runs has to take up the root, and what gateways have cannot be seen, only waited for. It returns when a
// pod that is created then needs no restart for the root.
func (u *up) join(ctx context.Context) error {
	if err := u.applyVirtualMesh(ctx); err != nil {
		return err
	}
	client, err := u.clusters[0].Client()
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	said := ""
	err = kube.Until(timed, "waiting for the common root", func(ctx context.Context) error {
		meshes, err := client.List(ctx, kube.Policies("virtualmeshes"), planeNamespace)
		if err != nil {
			return err
		}
		for i := range meshes {
			stage, _, _ := unstructured.NestedString(meshes[i].Object, "status", "trust", "stage")
			if stage != "ESTABLISHED" {
				u.noteTrust(&meshes[i], &said)
				return fmt.Errorf("the trust of VirtualMesh %s is %q", meshes[i].GetName(), stage)
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; %s", err, u.runtime.serveLog(ctx, u.state))
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rootSettles):
		return nil
	}
}

// noteTrust notes what the trust of a policy waits for, if it has not said so yet.
func (u *up) noteTrust(policy *unstructured.Unstructured, said *string) {
	waits, _, _ := unstructured.NestedString(policy.Object, "status", "trust", "message")
	if !u.opts.Terminal {
		// Each note is a line then, so without the details that change all the time.
		waits, _, _ = strings.Cut(waits, ";")
	}
	if waits != "" && waits != *said {
		u.opts.Progress.Note("%s", waits)
		*said = waits
	}
}

// waitEnforced waits until every policy is accepted in its current generation and
// Istio has the traffic shift.
func (u *up) waitEnforced(ctx context.Context) error {
	client, err := u.clusters[0].Client()
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	said := ""
	err = kube.Until(timed, "waiting for the policies", func(ctx context.Context) error {
		for _, plural := range []string{"virtualmeshes", "trafficpolicies", "accesspolicies"} {
			policies, err := client.List(ctx, kube.Policies(plural), "gloo-mesh")
			if err != nil {
				return err
			}
			if len(policies) == 0 {
				return fmt.Errorf("there are no %s", plural)
			}
			for _, policy := range policies {
				if err := accepted(&policy); err != nil {
					u.noteTrust(&policy, &said)
					return fmt.Errorf("%s %s: %w", policy.GetKind(), policy.GetName(), err)
				}
			}
		}
		return shifted(ctx, client)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; %s", err, u.runtime.serveLog(ctx, u.state))
	}
	return err
}

// accepted checks the status of a policy.
func accepted(policy *unstructured.Unstructured) error {
	observed, _, _ := unstructured.NestedInt64(policy.Object, "status", "observedGeneration")
	if observed != policy.GetGeneration() {
		return fmt.Errorf("generation %d is not translated yet", policy.GetGeneration())
	}
	verdict, _, _ := unstructured.NestedString(policy.Object, "status", "state")
	if verdict != "ACCEPTED" {
		errs, _, _ := unstructured.NestedStringSlice(policy.Object, "status", "errors")
		return fmt.Errorf("it is %s: %q", verdict, errs)
	}
	return nil
}

// shifted checks the three weighted routes in the VirtualService of reviews.
func shifted(ctx context.Context, client *kube.Client) error {
	service, err := client.Get(ctx, kube.Networking("virtualservices"), "bookinfo", "reviews")
	if err != nil {
		return err
	}
	http, _, _ := unstructured.NestedSlice(service.Object, "spec", "http")
	for _, one := range http {
		route, ok := one.(map[string]any)
		if !ok {
			continue
		}
		if destinations, _, _ := unstructured.NestedSlice(route, "route"); len(destinations) == 3 {
			return nil
		}
	}
	return errors.New("VirtualService bookinfo/reviews does not have its three routes yet")
}
