package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/issuer"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// gatewayStory is a VirtualMesh whose meshes keep their own roots, on real API servers: their gateways trust each other. Agents
// and the issuer are real; what is asked for is planned here. Its clock is its own.
type gatewayStory struct {
	t       testing.TB
	name    string
	members []*gatewayMember
	plan    plan
	now     atomic.Int64
	// roots are those that somebody may need, the one that is to sign last. Only they survive whoever dies.
	roots  []*pki.Authority
	serve  *gatewayServe
	nth    int
	died   []string
	wrote  int
	checks int
}

// gatewayMember is a cluster with a real agent and the model of gateways.
type gatewayMember struct {
	*gatewayWorld
	story     *gatewayStory
	cluster   string
	own, mesh string
	admin     *rest.Config
	reader    *store
	process   *process
	agent     *agent
	nth       int
	// in: it is a member.
	in bool
}

// gatewayServe is a process of the management plane.
type gatewayServe struct {
	process *process
	clients map[string]*kube.Client
	toIssue chan struct{}
	stop    func()

	mu    sync.Mutex
	state *snapshot.State
}

func newGatewayStory(t testing.TB, servers []*rest.Config, name string, p plan) *gatewayStory {
	t.Helper()
	s := &gatewayStory{t: t, name: name, plan: p}
	s.now.Store(time.Now().UnixNano())
	for i, admin := range servers {
		m := &gatewayMember{
			gatewayWorld: newGatewayWorld(t, uint64(i), 2), story: s, cluster: fmt.Sprintf("cluster-%d", i+1), own: name, mesh: name + "-istio", admin: admin, in: true,
		}
		sandboxtest.MakeNamespace(t, admin, m.own)
		sandboxtest.MakeNamespace(t, admin, m.mesh)
		var err error
		m.reader, err = newStore(admin, m.own, ecKey)
		require.NoError(t, err)
		s.members = append(s.members, m)
		m.begin()
	}
	s.begin()
	t.Cleanup(func() { s.serve.stop() })
	return s
}

func (s *gatewayStory) time() time.Time { return time.Unix(0, s.now.Load()) }

// name is that of the IssuedCertificate.
func (m *gatewayMember) name() string { return snapshot.GatewayCertificateName("istiod-" + m.cluster) }

func (m *gatewayMember) ref() snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: m.cluster, Namespace: m.own, Name: m.name()}
}

// addRoot makes another root that is to sign.
func (s *gatewayStory) addRoot() *pki.Authority {
	root := longRoot(s.t, "root")
	s.roots = append(s.roots, root)
	for _, m := range s.members {
		m.known[rootPrint(root)] = root
	}
	return root
}

// Authority implements issuer.Roots.
func (s *gatewayStory) Authority(_ snapshot.Ref, fingerprint string) *pki.Authority {
	return s.members[0].known[fingerprint]
}

// begin starts the next process of the agent.
func (m *gatewayMember) begin() {
	m.t.Helper()
	part := "agent of " + m.cluster
	left, late := m.story.plan(part, m.nth)
	m.nth++
	m.process = &process{part: part, left: left, late: late, wrote: func(write string) {
		if strings.Contains(write, snapshot.GatewaySecret) || strings.HasSuffix(write, "/secrets") {
			m.refresh()
			m.story.check(m.cluster + ": " + write)
		}
	}}
	a, err := newAgent(Options{
		Config: dateless(m.process.wrap(m.admin)), Namespace: m.own, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: m.story.time, newKey: ecKey, leaveAfter: -1,
	}, newMetrics())
	require.NoError(m.t, err)
	m.agent = a
}

// dateless hides the API server's clock, which is not that of a story.
func dateless(config *rest.Config) *rest.Config {
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &undated{base} })
	return config
}

type undated struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u *undated) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Date")
	}
	return response, err
}

// refresh reads what the model of the gateways needs.
func (m *gatewayMember) refresh() {
	m.t.Helper()
	ctx := context.Background()
	m.now = m.story.time()
	secret, err := m.reader.secret(ctx, m.mesh, snapshot.GatewaySecret)
	require.NoError(m.t, err)
	m.cacerts = secret
	all, err := m.reader.certificates(ctx)
	require.NoError(m.t, err)
	m.certificate = all[m.name()]
}

func (m *gatewayMember) step() {
	m.t.Helper()
	err := m.agent.pass(m.t.Context())
	if m.t.Failed() {
		m.t.FailNow()
	}
	if dead := m.process.dead(); dead != "" {
		m.story.died = append(m.story.died, dead)
		m.story.wrote += m.process.written()
		m.begin()
		return
	}
	require.NoError(m.t, err)
}

// begin starts the next process of the management plane.
func (s *gatewayStory) begin() {
	s.t.Helper()
	left, late := s.plan("serve", s.nth)
	s.nth++
	p := &gatewayServe{process: &process{part: "serve", left: left, late: late}, clients: map[string]*kube.Client{}, toIssue: make(chan struct{}, 1)}
	configs := map[string]*rest.Config{}
	for _, m := range s.members {
		configs[m.cluster] = p.process.wrap(m.admin)
		p.clients[m.cluster] = storyClient(s.t, configs[m.cluster])
	}
	signer := issuer.New(issuer.Options{
		Roots: s, State: p.latest, Clusters: func() map[string]*rest.Config { return configs },
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: s.time,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { signer.Run(ctx, p.toIssue) })
	p.stop = func() { cancel(); group.Wait() }
	s.serve = p
}

func (p *gatewayServe) latest() *snapshot.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// report is what a member says about what was asked of it last; nil if it has not.
func (m *gatewayMember) report() *certificatesv1.TrustReport {
	if m.certificate == nil || m.certificate.Status.ObservedGeneration != m.certificate.Generation {
		return nil
	}
	return m.certificate.Status.Trust
}

func (s *gatewayStory) all(holds func(m *gatewayMember) bool) bool {
	return !slices.ContainsFunc(s.members, func(m *gatewayMember) bool { return m.in && !holds(m) })
}

// specs are what is asked of members: a root signs when all trust it, and one goes when nobody presents it.
func (s *gatewayStory) specs() map[*gatewayMember]*certificatesv1.IssuedCertificateSpec {
	signs := s.roots[len(s.roots)-1]
	if s.all(func(m *gatewayMember) bool {
		r := m.report()
		return r != nil && m.certificate.Spec.Trust.Root == rootPrint(signs) && slices.Equal(r.Presented, []string{rootPrint(signs)})
	}) {
		s.roots = []*pki.Authority{signs}
	}
	trusted := s.all(func(m *gatewayMember) bool {
		return m.certificate == nil || m.report() != nil && slices.Contains(m.report().Trusted, rootPrint(signs))
	})
	out := map[*gatewayMember]*certificatesv1.IssuedCertificateSpec{}
	for _, m := range s.members {
		if !m.in {
			continue
		}
		root := rootPrint(signs)
		if m.certificate != nil && !trusted {
			root = m.certificate.Spec.Trust.Root
		}
		out[m] = &certificatesv1.IssuedCertificateSpec{
			Hosts: []string{gatewayHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: m.mesh, Name: snapshot.GatewaySecret},
			Trust: &certificatesv1.TrustRequest{Usage: certificatesv1.TrustUsageGateway, Root: root, Bundle: string(bundleOf(s.roots...).PEM())},
		}
	}
	return out
}

// stepServe writes what is asked of members, and signs what they request. It reports whether the process has died.
func (s *gatewayStory) stepServe() bool {
	s.t.Helper()
	p, ctx := s.serve, s.t.Context()
	for _, m := range s.members {
		m.refresh()
	}
	specs := s.specs()
	trust := &snapshot.TrustPlan{}
	state := &snapshot.State{Input: &snapshot.Input{}, Plan: &snapshot.Plan{VirtualMeshes: []*snapshot.VirtualMeshPlan{{Ref: snapshot.Ref{Kind: snapshot.VirtualMesh, Name: "vm"}, Trust: trust}}}}
	for _, m := range s.members {
		requests, err := m.reader.requests(ctx)
		require.NoError(s.t, err)
		state.Input.Clusters = append(state.Input.Clusters, &snapshot.Cluster{Name: m.cluster, Sync: snapshot.Synced, CertificateRequests: ordered(requests)})
		if spec := specs[m]; spec != nil {
			trust.Members = append(trust.Members, &snapshot.MemberTrust{Ref: m.ref(), Spec: spec, Grant: &snapshot.CertificateGrant{
				Usage: spec.Trust.Usage, Root: spec.Trust.Root, Hosts: spec.Hosts, Organization: "Istio", Days: certificatesv1.DefaultTtlDays,
			}})
		}
		if err := p.ask(ctx, m, specs[m]); err != nil {
			require.ErrorIs(s.t, err, errKilled)
			return true
		}
	}
	p.mu.Lock()
	p.state = state
	p.mu.Unlock()
	signal(p.toIssue)
	for m := range specs {
		if request := state.Input.Clusters[slices.Index(s.members, m)].CertificateRequests; len(request) == 0 {
			continue
		}
		waittest.Until(s.t, "the issuer answers", func() bool {
			requests, err := m.reader.requests(ctx)
			require.NoError(s.t, err)
			request := requests[m.name()]
			return request == nil || request.Status.ObservedGeneration == request.Generation || p.process.dead() != ""
		})
	}
	return p.process.dead() != ""
}

// ask applies or deletes the IssuedCertificate of a member.
func (p *gatewayServe) ask(ctx context.Context, m *gatewayMember, spec *certificatesv1.IssuedCertificateSpec) error {
	switch {
	case spec == nil && m.certificate == nil:
		return nil
	case spec == nil:
		return p.clients[m.cluster].Delete().AbsPath(kube.Path(snapshot.IssuedCertificate, m.own, m.name(), "")...).Do(ctx).Error()
	case m.certificate != nil && sum(m.certificate.Spec) == sum(*spec):
		return nil
	}
	return (&storyServe{clients: p.clients}).patch(ctx, m.ref(), "", map[string]any{"spec": spec})
}

// round lets each part do one step, and some time pass. It reports whether anything was written.
func (s *gatewayStory) round() bool {
	s.t.Helper()
	before := s.writes()
	if s.stepServe() {
		s.died = append(s.died, s.serve.process.dead())
		s.wrote += s.serve.process.written()
		s.serve.stop()
		s.begin()
	}
	for _, m := range s.members {
		m.step()
		m.refresh()
		m.honest("a pass of the agent of " + m.cluster)
	}
	s.now.Add(int64(10 * time.Second))
	for _, m := range s.members {
		m.now = m.now.Add(-10 * time.Second)
		m.pass(10 * time.Second)
		if i := s.checks % 7; i < len(m.gateways) { // some are quicker
			m.load(m.gateways[i])
		}
		s.check("gateways of " + m.cluster + " load")
	}
	return s.writes() > before
}

func (s *gatewayStory) writes() int {
	n := s.wrote + len(s.died) + s.serve.process.written()
	for _, m := range s.members {
		n += m.process.written()
	}
	return n
}

// until lets everybody go on until something holds, and nobody has written anything for as long as a change takes to count.
func (s *gatewayStory) until(what string, holds func() bool) {
	s.t.Helper()
	quiet := 0
	for range mostRounds {
		if quiet++; s.round() {
			quiet = 0
		}
		if quiet > 7 && holds() {
			return
		}
	}
	var said strings.Builder
	for _, m := range s.members {
		if m.certificate != nil {
			fmt.Fprintf(&said, "%s: %s %s %+v\n", m.cluster, m.certificate.Status.State, m.certificate.Status.Error, m.certificate.Status.Trust)
		}
	}
	require.FailNow(s.t, "it was waited in vain until "+what, "%s%s", &said, strings.Join(s.died, "\n"))
}

// check fails if a gateway may be presented a certificate that it does not trust, or the Secret cannot be used.
func (s *gatewayStory) check(after string) {
	s.t.Helper()
	s.checks++
	for _, a := range s.members {
		if !a.in {
			continue
		}
		if a.cacerts != nil {
			_, err := pki.ReadGatewayTLS(a.cacerts.Data)
			require.NoError(s.t, err, "after %s", after)
		}
		for _, b := range s.members {
			if a == b || !b.in {
				continue
			}
			for _, one := range a.gateways {
				for _, other := range b.gateways {
					if one.root == "" || other.root == "" {
						continue // it has nothing to meet with yet
					}
					require.Contains(s.t, other.trusted.Fingerprints(), one.root, "after %s: a gateway of %s does not trust one of %s\n%s",
						after, b.cluster, a.cluster, strings.Join(s.died, "\n"))
				}
			}
		}
	}
}

// established: all members have the root that signs, and no other.
func (s *gatewayStory) established() bool {
	return len(s.roots) == 1 && s.all(func(m *gatewayMember) bool { return m.certificate != nil && m.established(s.roots[0], s.roots[0]) })
}

// assertHas checks that a member is as it is to be, and that nothing is left of what was before.
func (m *gatewayMember) assertHas(root *pki.Authority) {
	m.t.Helper()
	m.refresh()
	m.assertEstablished(root, root)
	key, err := m.reader.secret(m.t.Context(), m.own, m.name())
	require.NoError(m.t, err)
	private, err := pki.ReadKey(key.Data[privateKey])
	require.NoError(m.t, err)
	read, err := pki.ReadGatewayTLS(m.cacerts.Data)
	require.NoError(m.t, err)
	require.NoError(m.t, private.Check(read.Chain[0]))
	for _, g := range m.gateways {
		require.Equal(m.t, rootPrint(root), g.root)
	}
}

// left: nothing is left for its gateways.
func (m *gatewayMember) left() bool {
	m.t.Helper()
	requests, err := m.reader.requests(m.t.Context())
	require.NoError(m.t, err)
	key, err := m.reader.secret(m.t.Context(), m.own, m.name())
	require.NoError(m.t, err)
	m.refresh()
	return len(requests) == 0 && key == nil && m.cacerts == nil && m.certificate == nil
}

// TestGatewaysWhenAnyPartDies tells the life of the certificates of two meshes' gateways: they join, their root is exchanged, one
// leaves and comes back. The issuer and the agents die at their writes. It ends the same as if they did not, and at no moment is a
// gateway presented a certificate that it does not trust.
func TestGatewaysWhenAnyPartDies(t *testing.T) {
	t.Parallel()
	tellOfGateways(t, map[string]tale{"everybody dies before and after each write": {plan: always("", 0), deaths: 60}})
}

// TestGatewaysWhenSomePartDies tells the same with fewer deaths, so that others go on beside those who died.
func TestGatewaysWhenSomePartDies(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	tellOfGateways(t, map[string]tale{
		"nobody dies":                     {plan: lives},
		"agents die at each second write": {plan: always("agent", 1), deaths: 10},
		"serve dies at each write":        {plan: always("serve", 0), deaths: 10},
	})
}

func tellOfGateways(t *testing.T, tales map[string]tale) {
	t.Helper()
	servers := storyServers(t)
	for i, name := range slices.Sorted(maps.Keys(tales)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGatewayStory(t, servers, "gateways-"+string(rune('a'+i)), tales[name].plan)
			tellGateways(s)
			t.Logf("%d writes, %d deaths, looked %d times who trusts whom", s.writes(), len(s.died), s.checks)
			require.GreaterOrEqual(t, len(s.died), tales[name].deaths)
		})
	}
}

func tellGateways(s *gatewayStory) {
	s.t.Helper()
	first := s.addRoot()
	s.until("both have joined", s.established)
	for _, m := range s.members {
		m.assertHas(first)
	}
	second := s.addRoot()
	s.until("both have another root", func() bool { return s.established() && s.roots[0] == second })
	for _, m := range s.members {
		m.assertHas(second)
	}
	leaving := s.members[1]
	leaving.in = false
	s.until("one has left", leaving.left)
	s.members[0].assertHas(second)
	for _, g := range leaving.gateways {
		*g = party{}
	}
	leaving.in = true
	s.until("it is back", s.established)
	leaving.assertHas(second)
}
