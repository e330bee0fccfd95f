package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// environment has two clusters with Istio and bookinfo, and the engine with a real
// source and a real sink.
type environment struct {
	clusters   map[string]*local.Cluster
	management *kube.Client
	proxies    []proxy
	// written are the generations of the VirtualMesh and the Settings, by kind.
	written map[string]int64

	source *watch.Source
	memo   *engine.Translator
	sink   *apply.Sink
	// state is what was translated last.
	state *snapshot.State
	// asked counts the requests of which why was compared with what proxies do.
	asked map[explain.Verdict]int
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	ctx := t.Context()
	clusters := sandboxtest.Clusters(t, 2)
	var group errgroup.Group
	for _, c := range clusters {
		group.Go(func() error { return populate(ctx, c) })
	}
	require.NoError(t, group.Wait())

	w := &environment{clusters: map[string]*local.Cluster{}, written: map[string]int64{}, asked: map[explain.Verdict]int{}, memo: engine.New(engine.Options{})}
	configs := map[string]*rest.Config{}
	for _, c := range clusters {
		config, err := c.Config()
		require.NoError(t, err)
		w.clusters[c.Name()], configs[c.Name()] = c, config
		w.findProxies(ctx, t, c)
	}
	management := configs["cluster-1"]
	_, err := registration.InstallCRDs(ctx, management)
	require.NoError(t, err)
	w.management, err = clusters[0].Client()
	require.NoError(t, err)
	w.write(ctx, t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: gloo-mesh}\n")

	w.source, err = watch.New(watch.Options{Management: management})
	require.NoError(t, err)
	w.sink = apply.New(apply.Options{Widen: engine.Widen})
	w.sink.Set("", w.source.Link(""))
	for name, config := range configs {
		w.source.Set(name, "", config, nil)
		w.sink.Set(name, w.source.Link(name))
	}
	w.run(t)
	return w
}

// run runs the source and the sink until the test ends.
func (w *environment) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error { return w.source.Run(ctx) })
	group.Go(func() error { w.sink.Run(ctx); return nil })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, group.Wait())
	})
}

func (w *environment) write(ctx context.Context, t *testing.T, documents string) {
	t.Helper()
	require.NoError(t, w.management.ApplyYAML(ctx, []byte(documents)))
}

// translate translates the current state of the clusters and applies the result. An
// object that an API server or istiod rejects is an error.
func (w *environment) translate(ctx context.Context) (*snapshot.Plan, error) {
	input := w.source.Input()
	if input == nil {
		return nil, errors.New("the clusters have not been read yet")
	}
	read := map[string]int64{}
	for _, o := range input.Management.VirtualMeshes {
		read["VirtualMesh"] = o.Generation
	}
	for _, o := range input.Management.Settings {
		read["Settings"] = o.Generation
	}
	if !maps.Equal(read, w.written) {
		return nil, fmt.Errorf("read generations %v, wrote %v", read, w.written)
	}
	w.state = w.memo.Translate(input)
	w.sink.Apply(w.state.Output)
	if err := w.sink.Settled(ctx); err != nil {
		return nil, err
	}
	for _, f := range w.sink.Failures() {
		return nil, kube.Final(fmt.Errorf("%s: %s", f.Ref, f.Reason.String()))
	}
	return w.state.Plan, nil
}

// generation is that of a stored policy.
func (w *environment) generation(t *testing.T, kind, name string) int64 {
	t.Helper()
	plural := map[string]string{"TrafficPolicy": "trafficpolicies", "AccessPolicy": "accesspolicies"}[kind]
	stored, err := w.management.Get(t.Context(), kube.Policies(plural), "gloo-mesh", name)
	require.NoError(t, err)
	return stored.GetGeneration()
}

// readPolicies returns an error if a policy has not been read yet in the generation that was
// written; the keys are kinds and names.
func readPolicies(plan *snapshot.Plan, written map[string]int64) error {
	read := 0
	for _, p := range plan.Policies {
		want, ok := written[p.Ref.Kind.String()+" "+p.Ref.Name]
		if !ok {
			continue
		}
		if got := p.Policy.GetGeneration(); got != want {
			return fmt.Errorf("%s: generation %d has been read, not %d", p.Ref, got, want)
		}
		read++
	}
	if read != len(written) {
		return errors.New("not all policies have been read yet")
	}
	return nil
}

// accepted returns an error if one of the policies is not accepted.
func accepted(plan *snapshot.Plan, names []string) error {
	verdicts, issues := map[string][]snapshot.Verdict{}, map[string][]snapshot.Issue{}
	for _, p := range plan.Policies {
		verdicts[p.Ref.Name], issues[p.Ref.Name] = p.Verdicts, p.Issues
	}
	for _, d := range plan.Dependencies {
		verdicts[d.Ref.Name], issues[d.Ref.Name] = d.Verdicts, d.Issues
	}
	for _, v := range plan.VirtualDestinations {
		for _, view := range v.Views {
			verdicts[v.Ref.Name] = append(verdicts[v.Ref.Name], snapshot.Verdict{
				Destination: view.Mesh.Ref, Accepted: len(view.Priorities) > 0, Issues: view.Issues,
			})
		}
		issues[v.Ref.Name] = v.Issues
	}
	for _, name := range names {
		all, read := verdicts[name]
		if !read {
			return fmt.Errorf("policy %s has not been read yet", name)
		}
		if slices.ContainsFunc(issues[name], func(i snapshot.Issue) bool { return i.Code == snapshot.NamespaceNotNamed }) {
			continue // the proxies are to know nothing of it
		}
		if len(all) == 0 {
			return fmt.Errorf("policy %s selects nothing: %v", name, issues[name])
		}
		for _, v := range all {
			if !v.Accepted {
				return fmt.Errorf("policy %s on %s: %v", name, v.Destination, v.Issues)
			}
		}
	}
	return nil
}

// ask gets the configuration of every proxy, and returns the differences to the
// Plan.
func (w *environment) ask(ctx context.Context, plan *snapshot.Plan) (configs map[string]*envoy.Config, count int, err error) {
	configs = map[string]*envoy.Config{}
	var mu sync.Mutex // guards configs
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, p := range w.proxies {
		group.Go(func() error {
			data, err := w.clusters[p.cluster].Proxy(ctx, p.namespace, p.pod)
			if err != nil {
				return err
			}
			config, err := envoy.Parse(data)
			mu.Lock()
			defer mu.Unlock()
			configs[p.String()] = config
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	var wrong []string
	for _, p := range w.proxies {
		all := facts(plan, p)
		count += len(all)
		for _, d := range differences(all, configs[p.String()]) {
			wrong = append(wrong, p.String()+": "+d)
		}
	}
	if len(wrong) > 0 {
		err = fmt.Errorf("%d of %d differ:\n%s", len(wrong), count, strings.Join(wrong, "\n"))
	}
	return configs, count, err
}

// atOnce bounds how many configurations are read in parallel: each needs a process.
const atOnce = 3

// converge waits until ready returns nil and every proxy matches the Plan.
func (w *environment) converge(t *testing.T, ready func(*snapshot.Plan) error) (plan *snapshot.Plan, configs map[string]*envoy.Config, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	err := kube.Until(ctx, "all proxies match the Plan", func(ctx context.Context) (err error) {
		if plan, err = w.translate(ctx); err != nil {
			return err
		}
		if err = ready(plan); err != nil {
			return err
		}
		configs, count, err = w.ask(ctx, plan)
		return err
	})
	require.NoError(t, err)
	return plan, configs, count
}
