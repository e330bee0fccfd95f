package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// simulation is a mesh whose state is known. Proxies start, renew, follow pushed roots, and end; the control plane takes up
// what is in the Secret one pod after the other; some of it does not answer; nodes' clocks are up to 50 s off.
type simulation struct {
	t         *testing.T
	r         *rand.Rand
	now       time.Time
	roots     []*pki.Authority
	meshes    map[string]pki.CACerts // by signer and number of roots
	secret    pki.CACerts
	timeout   time.Duration
	replicas  []*istiod
	proxies   []*proxy
	multiRoot bool
	skew      time.Duration
	earlier   *certificatesv1.TrustReport
	// looked is false while something changed that no complete look has seen.
	looked bool
	made   int
	// improved counts looks that say more than nothing.
	trusted, single, leftOut int
}

type istiod struct {
	has     pki.CACerts
	started time.Time
}

type proxy struct {
	Workload
	presents string
	trusts   []string
	pushed   []string
	until    time.Time
	renew    time.Time
	clock    time.Duration
	control  *istiod
	push     time.Time // when it is told; zero if it need not be
}

func (s *simulation) chance(percent int) bool { return s.r.IntN(100) < percent }

// ask gets a certificate from any pod of the control plane, as through the Service.
func (s *simulation) ask(p *proxy) {
	has := s.replicas[s.r.IntN(len(s.replicas))].has
	p.presents = pki.Fingerprint(has.Authority.Chain().Root())
	p.trusts = set(has.Roots.Fingerprints(), p.pushed)
	p.until = s.now.Add(p.TTL)
	p.renew = s.now.Add(p.TTL/2 + time.Duration(s.r.Int64N(int64(p.TTL/10))))
}

func (s *simulation) start(p *proxy) {
	p.Started = s.now.Add(p.clock).Truncate(time.Second)
	p.control = s.replicas[s.r.IntN(len(s.replicas))]
	p.pushed = nil
	if p.FollowsRoots && s.multiRoot {
		p.pushed = p.control.has.Roots.Fingerprints()
	}
	s.ask(p)
}

func (s *simulation) newProxy() *proxy {
	s.made++
	p := &proxy{clock: time.Duration(s.r.IntN(100)-50) * time.Second}
	p.Workload = Workload{
		Namespace: []string{"apps", "tenant"}[s.r.IntN(2)], Injected: true, Name: fmt.Sprintf("pod-%d", s.made), UID: fmt.Sprint(s.made), FollowsRoots: s.chance(50), Gateway: s.chance(10),
		Created: s.now.Add(-s.skew).Truncate(time.Second), TTL: []time.Duration{time.Hour, 24 * time.Hour}[s.r.IntN(2)],
	}
	s.start(p)
	return p
}

// advance lets time pass, a second at a time where something is due.
func (s *simulation) advance(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		next := end
		for _, p := range s.proxies {
			for _, at := range []time.Time{p.renew, p.push} {
				if !at.IsZero() && at.After(s.now) && at.Before(next) {
					next = at
				}
			}
		}
		s.now = next
		for _, p := range s.proxies {
			if !p.push.IsZero() && !p.push.After(s.now) {
				p.push, p.pushed = time.Time{}, p.control.has.Roots.Fingerprints()
				s.ask(p)
			}
			if !p.renew.After(s.now) {
				s.ask(p)
			}
		}
	}
}

// change writes another Secret: another signer, or other roots. The bytes of its roots change with either.
func (s *simulation) change() {
	root := s.roots[s.r.IntN(len(s.roots))]
	more := s.roots[s.r.IntN(len(s.roots))]
	if s.chance(60) { // only roots
		root = s.roots[slices.IndexFunc(s.roots, func(a *pki.Authority) bool {
			return sum(a) == pki.Fingerprint(s.secret.Authority.Chain().Root())
		})]
	}
	id := sum(root) + sum(more)
	if _, ok := s.meshes[id]; !ok {
		s.meshes[id] = newMesh(s.t, s.now, root, more)
	}
	s.secret = s.meshes[id]
}

// takeUp has a pod of the control plane sign with the Secret; while it runs if it can.
func (s *simulation) takeUp(i int) {
	old := s.replicas[i]
	live := s.multiRoot && (old.has.Roots.Covers(s.secret.Roots) || s.secret.Roots.Covers(old.has.Roots))
	if live {
		old.has = s.secret
		for _, p := range s.proxies {
			if p.control == old && p.FollowsRoots {
				p.push = s.now.Add(time.Duration(1+s.r.IntN(25)) * time.Second)
			}
		}
		return
	}
	s.replicas[i] = &istiod{has: s.secret, started: s.now}
	for _, p := range s.proxies {
		if p.control == old {
			p.control, p.push = s.replicas[s.r.IntN(len(s.replicas))], time.Time{}
			if p.FollowsRoots && s.multiRoot {
				p.push = s.now.Add(time.Duration(1+s.r.IntN(25)) * time.Second)
			}
		}
	}
}

func (s *simulation) step() {
	s.advance(time.Duration(s.r.IntN([]int{20, 120, 7200}[s.r.IntN(3)])+1) * time.Second)
	behind := slices.IndexFunc(s.replicas, func(i *istiod) bool { return i.has.Authority != s.secret.Authority })
	switch {
	case behind >= 0 && s.chance(50):
		s.takeUp(behind)
		s.looked = false
	case behind < 0 && s.looked && s.chance(15):
		s.change()
	case s.chance(20):
		s.start(s.proxies[s.r.IntN(len(s.proxies))]) // its container restarts
	case s.chance(40):
		s.proxies[s.r.IntN(len(s.proxies))] = s.newProxy()
	}
}

// look observes what a Looker could, judges, and compares with what is.
func (s *simulation) look() {
	o := Observed{Now: s.now, Namespaces: map[string]pki.Bundle{"apps": bundle(s.roots...), "tenant": bundle(s.roots...)}}
	complete := true
	for i, r := range s.replicas {
		replica := Replica{Name: fmt.Sprint(i), Started: r.started, MultiRoot: s.multiRoot}
		// One that has not been seen since it changed does answer: what nobody saw cannot be known.
		if s.chance(90) || !s.looked {
			replica.Answer = answer(r.has)
		} else {
			complete = false
		}
		o.ControlPlane = append(o.ControlPlane, replica)
	}
	for _, p := range s.proxies {
		w := p.Workload
		if signer := answer(s.replicas[0].has); complete && s.chance(20) && !w.Gateway {
			w.Seen = s.see(p, signer)
		}
		o.Workloads = append(o.Workloads, w)
	}
	result := Judge(Request{Secret: s.secret, Bundle: s.secret.Roots, Root: pki.Fingerprint(s.secret.Authority.Chain().Root()), Earlier: s.earlier, Skew: s.skew, Timeout: s.timeout}, o)
	s.looked = s.looked || complete
	for _, p := range s.proxies {
		if LeftOut(result.Behind, p.Namespace) {
			s.leftOut++
			continue
		}
		for _, root := range result.Trusted {
			require.Contains(s.t, p.trusts, root, "%s at %s: %+v", p.Name, s.now, result)
		}
		if p.until.After(s.now) {
			require.Contains(s.t, result.Presented, p.presents, "%s at %s: %+v", p.Name, s.now, result)
		}
	}
	if len(result.Trusted) > 1 {
		s.trusted++
	}
	if len(result.Presented) == 1 {
		s.single++
	}
	s.earlier = &certificatesv1.TrustReport{}
	result.Report(s.earlier)
}

func (s *simulation) see(p *proxy, by *Answer) *Seen {
	seen := &Seen{Presents: p.presents, Client: by.Root, Accepts: Refused}
	if slices.Contains(p.trusts, by.Root) {
		seen.Accepts = Accepted
	}
	for _, root := range s.roots {
		if slices.Contains(p.trusts, sum(root)) {
			seen.Names = append(seen.Names, string(root.Chain()[0].RawSubject))
		}
	}
	return seen
}

// TestNeverTooEarly: whatever happens, what is said to be trusted by all is, and what is presented is said.
func TestNeverTooEarly(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	roots := []*pki.Authority{newRoot(t, start), newRoot(t, start), newRoot(t, start)}
	trusted, single, leftOut := 0, 0, 0
	for seed := range uint64(150) {
		s := &simulation{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: start.Add(time.Duration(seed) * time.Millisecond), roots: roots, meshes: map[string]pki.CACerts{}}
		s.multiRoot = s.chance(60)
		if s.chance(50) {
			s.timeout = time.Duration(1+s.r.IntN(4)) * time.Hour
		}
		s.skew = time.Duration(s.r.IntN(600)-300) * time.Second
		s.secret = newMesh(t, start, roots[0])
		for range 1 + s.r.IntN(2) {
			s.replicas = append(s.replicas, &istiod{has: s.secret, started: start.Add(-24 * time.Hour)})
		}
		for range 1 + s.r.IntN(6) {
			s.proxies = append(s.proxies, s.newProxy())
		}
		for range 300 {
			s.step()
			if s.chance(60) {
				s.look()
			}
		}
		trusted, single, leftOut = trusted+s.trusted, single+s.single, leftOut+s.leftOut
	}
	t.Logf("looks that found two roots trusted: %d, one root presented: %d, a workload left out: %d", trusted, single, leftOut)
	require.Greater(t, trusted, 1000, "the test shows nothing if nothing is ever trusted")
	require.Greater(t, leftOut, 1000, "the test shows nothing if nobody is left out")
	require.Greater(t, single, 1000, "the test shows nothing if something else is always presented")
}
