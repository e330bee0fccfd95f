package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// converges waits until an edit that is made now has arrived in both clusters, the
// management plane is ready, and every object is as the engine translates what there
// is. Nothing is edited meanwhile. It is a violation if that takes long.
func (s *soak) converges(fault string) {
	s.t.Helper()
	s.editor.mu.Lock()
	defer s.editor.mu.Unlock()
	s.revive()
	began := time.Now()
	s.marks++
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*s.limits.within)
	defer cancel()
	timeout := fmt.Sprintf("%ds", 100+s.marks)
	require.NoError(s.t, kube.Until(ctx, "an edit", func(ctx context.Context) error {
		return s.editor.clients["cluster-1"].ApplyYAML(ctx, fmt.Appendf(nil, marker, timeout))
	}))
	var late string
	err := kube.Until(ctx, "everything converges after "+fault, func(ctx context.Context) error {
		err := s.unconverged(ctx, timeout)
		if err != nil && late == "" && time.Since(began) > s.limits.within {
			late = err.Error()
		}
		return err
	})
	took := time.Since(began)
	s.tally.count("checks that everything has converged")
	s.tally.converged(fault, took)
	if took > s.limits.within {
		s.tally.violate("after %s, it took %s to converge; after %s: %s", fault, took.Round(100*time.Millisecond), s.limits.within, late)
	}
	if err != nil {
		s.t.Log(s.tally)
		require.NoError(s.t, err)
	}
}

// revive starts the processes that ended with their API server, as a kubelet does: istiod
// exits when it loses its leader election for long enough.
func (s *soak) revive() {
	s.t.Helper()
	for _, c := range s.clusters {
		revived, err := c.Revive(s.t.Context())
		require.NoError(s.t, err)
		for _, role := range revived {
			s.tally.count("process started again: " + role)
		}
	}
}

// unconverged is what is still to be done.
func (s *soak) unconverged(ctx context.Context, timeout string) error {
	select {
	case err := <-s.serve.exited:
		s.serve.exited <- err
		return kube.Final(fmt.Errorf("the management plane has ended: %w", err))
	default:
	}
	if text, err := s.get("/readyz"); err != nil || text != "ok\n" {
		return fmt.Errorf("the management plane is not ready: %s: %w", text, err)
	}
	for cluster, client := range s.clients {
		o, err := client.Get(ctx, kube.Networking("virtualservices"), "bookinfo", "ratings")
		if err != nil {
			return err
		}
		if text := fmt.Sprint(field(o, "spec", "http")); !strings.Contains(text, "timeout:"+timeout) {
			return fmt.Errorf("the edit has not arrived in %s: %s", cluster, text)
		}
	}
	return errors.Join(s.differs(ctx), s.health.rest())
}

// differs compares the clusters with a translation of what there is, by another process
// without a past.
func (s *soak) differs(ctx context.Context) error {
	config, err := s.cluster("cluster-1").Config()
	if err != nil {
		return err
	}
	in, err := serve.ReadOnce(ctx, serve.Options{Management: config, Log: slog.New(slog.DiscardHandler)}, nil, nil)
	if err != nil {
		return err
	}
	if in, err = s.withRelayed(ctx, in); err != nil {
		return err
	}
	out := engine.Translate(in).Output
	if len(out.Frozen) > 0 {
		return fmt.Errorf("clusters %v do not answer", out.Frozen)
	}
	wanted := map[string]bool{}
	for o := range out.Objects {
		if o.Ref.Cluster == "" {
			continue // discovered objects are in the Input of the next translation
		}
		wanted[o.Ref.String()] = true
		if err := s.differsFrom(ctx, o); err != nil {
			return err
		}
	}
	if len(wanted) < 20 {
		return fmt.Errorf("only %d objects are wanted", len(wanted))
	}
	return errors.Join(s.leftOver(ctx, wanted), s.unobserved(ctx))
}

// differsFrom returns an error unless an object is as it is wanted.
func (s *soak) differsFrom(ctx context.Context, o *snapshot.Object) error {
	text, err := o.YAML()
	if err != nil {
		return err
	}
	want, err := kube.Decode(text)
	if err != nil {
		return err
	}
	is, err := s.clients[o.Ref.Cluster].Get(ctx, o.Ref.Kind.GroupVersionResource(), o.Ref.Namespace, o.Ref.Name)
	if err != nil {
		return err
	}
	if o.Ref.Kind == snapshot.Gateway {
		is = withHostsOf(want[0], is)
	}
	// As JSON, because numbers are decoded to several types.
	if a, b := asJSON(field(want[0], "spec")), asJSON(field(is, "spec")); a != b {
		return fmt.Errorf("%s: expected %s, got %s", o.Ref, a, b)
	}
	return nil
}

// leftOver returns an error if there are objects of ours that are not wanted. What
// followed from a Service of the run that is gone stays for a grace period, and so does what
// users edited while nothing served, except for routes.
func (s *soak) leftOver(ctx context.Context, wanted map[string]bool) error {
	unexplained := time.Since(s.gap) < gracePeriod+s.limits.within
	for cluster, client := range s.clients {
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
			if !strings.HasSuffix(kind.Info().Group, ".istio.io") {
				continue
			}
			list, err := client.List(ctx, kind.GroupVersionResource(), "")
			if err != nil {
				return err
			}
			for _, o := range list {
				ref := snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: o.GetNamespace(), Name: o.GetName()}
				if o.GetLabels()[snapshot.NetworkingOwnerLabel] == mgmt && !wanted[ref.String()] && !lingers(&o) &&
					(kind == snapshot.VirtualService || !unexplained) {
					return fmt.Errorf("%s is left over", ref)
				}
			}
		}
	}
	return nil
}

func lingers(o *unstructured.Unstructured) bool {
	return isOfTheRun(o.GetName()) && o.GetKind() != "VirtualService"
}

// isOfTheRun reports whether a name, or a host, is of a Service that comes and goes.
func isOfTheRun(name string) bool {
	return slices.ContainsFunc([]string{"soak-", "shop-corner", "open"}, func(word string) bool { return strings.HasPrefix(name, word) })
}

// unobserved returns an error if a policy has a status that is about an earlier
// generation of it.
func (s *soak) unobserved(ctx context.Context) error {
	for _, kind := range []string{"trafficpolicies", "accesspolicies", "virtualmeshes"} {
		list, err := s.clients["cluster-1"].List(ctx, kube.Policies(kind), mgmt)
		if err != nil {
			return err
		}
		for _, o := range list {
			if field(&o, "status", "observedGeneration") != o.GetGeneration() {
				return fmt.Errorf("the status of %s %s is of generation %v, not %d", kind, o.GetName(), field(&o, "status", "observedGeneration"), o.GetGeneration())
			}
		}
	}
	return nil
}
