package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	whyRounds = 3
	// whyAsks are asked in a round, and one of so many by the command, which reads all anew.
	whyAsks, byCommand = 60, 10
	// divided is the least number of requests that are divided.
	divided = 300
	// drained is how long proxies may do what held before: that is the drain time of Istio for
	// connections that are open, 45 s, and time for a busy machine.
	drained = 90 * time.Second
)

// chance is that of any one comparison to find a difference where there is none.
const chance = 1e-9

// leastShare is the smallest of the shares that a shift has.
const leastShare = 0.1

// answers compares what `meshctl why` says of random requests under random policies with what
// becomes of them on the wire: whether they are refused, aborted or answered, which pods answer, with
// which shares, and which headers are changed.
//
// Some of what is said is left out. How long requests take, retries, mirrors, rate limits and CORS are
// for fields of a TrafficPolicy. Of hops and identities, only their effect is seen: who is let in. Where
// endpoints decide, any share will do. No request repeats a header, which why rejects.
func answers(t *testing.T, e *environment) {
	t.Helper()
	w := newWorld(t, e, rand.New(rand.NewPCG(waittest.Seed(t), 0)))
	found := &findings{asked: map[string]int{}}
	for range whyRounds {
		w.next(t)
		asked := w.read(t)
		found.since = time.Now()
		wrong := len(found.wrong)
		var group errgroup.Group
		group.SetLimit(3)
		for i := range whyAsks {
			a, answer := w.request(), asked.why
			if i%byCommand == 0 {
				answer = e.why
			}
			group.Go(func() error { return found.compare(t.Context(), e, a, answer) })
		}
		require.NoError(t, group.Wait())
		t.Logf("round %d: asked in %s", w.round, time.Since(found.since).Round(time.Millisecond))
		if len(found.wrong) > wrong {
			t.Log(w.documents)
		}
	}
	t.Logf("%d requests for %v; %d answers were right later, the last after %s", found.sent, found.asked, found.late, found.latest.Round(time.Millisecond))
	assert.Empty(t, found.wrong)
	for _, v := range []explain.Verdict{explain.Allowed, explain.Refused, explain.Unreachable} {
		assert.NotZero(t, found.asked[string(v)], v)
	}
}

// findings are what comparisons found.
type findings struct {
	// since is when the policies were in force, but for connections that were open.
	since time.Time

	mu sync.Mutex
	// asked counts the answers by what they say.
	asked map[string]int
	// sent are the requests.
	sent int
	// late are the answers that did not hold at first, and latest is when the last one did.
	late   int
	latest time.Duration
	wrong  []string
}

// compare asks, sends the request, and notes how the two differ. Until open connections are drained,
// it sends it again if they do.
func (f *findings) compare(ctx context.Context, e *environment, a ask, answer func(context.Context, ask) (*explain.Why, error)) error {
	why, err := answer(ctx, a)
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	if why.Verdict == explain.Unknown || slices.ContainsFunc(why.Outcomes, func(o explain.Outcome) bool {
		return !o.Idle && (o.Verdict == explain.Unknown || a.past && nameless(o))
	}) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked[string(explain.Unknown)]++
		return nil
	}
	said := expect(why)
	count := said.requests()
	for again := false; ; again = true {
		got, err := e.sent(ctx, a, why, count)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		after := time.Since(f.since)
		difference := errors.Join(said.differs(got, count), headersDiffer(a, why, got))
		if difference == nil || after > drained {
			f.note(a, why, said, got, difference)
			f.lag(again && difference == nil, after)
			return nil
		}
	}
}

// lag notes that an answer did not hold at first.
func (f *findings) lag(late bool, after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if late {
		f.late++
		f.latest = max(f.latest, after)
	}
}

// note counts an answer, and notes how it differs from what requests got.
func (f *findings) note(a ask, why *explain.Why, said *expectation, got map[string]end, difference error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range got {
		f.sent += x.count
	}
	f.asked[string(why.Verdict)]++
	if said.aborted > 0 {
		f.asked["aborted"]++
	}
	if len(said.parts) > 1 {
		f.asked["divided"]++
	}
	if difference != nil {
		text, _ := json.Marshal(why) // it was read from JSON
		f.wrong = append(f.wrong, fmt.Sprintf("%s: %v\ngot %v\nsaid %s", a, difference, got, text))
	}
}

// reader answers as the command does, from what it would have read.
type reader struct {
	mu    sync.Mutex
	index *explain.Index
}

// read reads the clusters.
func (w *world) read(t *testing.T) *reader {
	t.Helper()
	config, err := w.clusters["cluster-1"].Config()
	require.NoError(t, err)
	read, err := reading.Management{Config: config, Namespace: snapshot.DefaultNamespace}.InForce(t.Context())
	require.NoError(t, err)
	return &reader{index: read.Index(nil)}
}

func (r *reader) why(_ context.Context, a ask) (*explain.Why, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	request := explain.Request{Method: a.method, Path: a.path, Headers: map[string]string{}}
	for name, values := range a.headers {
		request.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	host, port, _ := strings.Cut(a.to, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	request.Port = uint32(number)
	from, err := cmdutil.Pick(r.index, snapshot.Workload, a.workload())
	if err != nil {
		return nil, err
	}
	to, err := cmdutil.Called(r.index, from, host)
	if err != nil {
		return nil, err
	}
	return r.index.Why(from, to, request), nil
}

// why runs the command.
func (e *environment) why(ctx context.Context, a ask) (*explain.Why, error) {
	arguments := []string{"why", a.workload(), a.to, a.method, a.path, "-o", "json", "--kubeconfig", e.clusters["cluster-1"].Kubeconfig()}
	for name, values := range a.headers {
		for _, v := range values {
			arguments = append(arguments, "--header", name+": "+v)
		}
	}
	command := exec.CommandContext(ctx, e.options.Meshctl, arguments...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notAllowed {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	why := &explain.Why{}
	return why, json.Unmarshal(out.Bytes(), why)
}

// end is what became of some requests.
type end struct {
	count int
	// status and error are those of who answered.
	status int
	error  string
	// echo is what the application received, if it answered, and headers is what it got back.
	echo    echoed
	headers http.Header
}

func (x end) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d with %d %s", x.count, x.status, x.error))
}

// echoed is the answer of the application.
type echoed struct {
	Method, Host, Path string
	Headers            http.Header
}

// The ends of requests that no application answers. Those that an application answers end at
// "cluster-2 reviews-v3".
const (
	refusedEnd = "refused"
	abortedEnd = "aborted"
	nowhere    = "not answered"
)

// sent sends a request a number of times, and returns how it ended.
func (e *environment) sent(ctx context.Context, a ask, why *explain.Why, count int) (map[string]end, error) {
	to := a.to
	if why.Host != "" && strings.Contains(to, ".") {
		to = fmt.Sprintf("%s:%d", why.Host, why.Request.Port)
	}
	ends := map[string]end{}
	call := app.Call{URL: "http://" + to + a.path, Method: a.method, Headers: a.headers, Count: count, Parallel: min(count, 10), TimeoutMs: 10_000}
	err := e.plane.Send(ctx, a.from, call, func(outcomes []app.Outcome) {
		for _, o := range outcomes {
			name := nowhere
			switch {
			case o.Workload != "" && o.Status == http.StatusOK:
				name = o.Cluster + " " + o.Workload
			case o.Status == http.StatusForbidden && (strings.HasPrefix(o.Error, "RBAC") || o.Error == "Invalid origin"):
				name = refusedEnd
			case o.Error == "fault filter abort":
				name = abortedEnd + " " + strconv.Itoa(o.Status)
			}
			x := end{count: ends[name].count + len(o.Micros), status: o.Status, error: o.Error, headers: o.Headers}
			_ = json.Unmarshal([]byte(o.Body), &x.echo) // a proxy answers with text
			ends[name] = x
		}
	})
	return ends, err
}

// part are the ends of some of the requests.
type part struct {
	// ends are where they may end.
	ends []string
	// least and most are the bounds of their share.
	least, most float64
	outcome     *explain.Outcome
}

// nameless: who comes that way presents no identity.
func nameless(o explain.Outcome) bool {
	return !slices.ContainsFunc(o.Hops, func(h explain.Hop) bool { return h.Identity != "" })
}

// expectation is an answer as ends.
type expectation struct {
	parts   []part
	aborted float64
}

// expect reads an answer.
func expect(why *explain.Why) *expectation {
	x := &expectation{}
	if why.Route != nil {
		for _, s := range why.Route.Settings {
			if s.Name == "abort" {
				status, share, _ := strings.Cut(s.Value, " to ")
				x.aborted = shareIn(share)
				x.parts = append(x.parts, part{ends: []string{abortedEnd + " " + status}, least: x.aborted, most: x.aborted})
			}
		}
	}
	if len(why.Outcomes) == 0 {
		if x.aborted < 1 {
			x.parts = append(x.parts, part{ends: []string{nowhere}, least: 1, most: 1})
		}
		return x
	}
	if strings.HasPrefix(why.Reason, "the CSRF check of ") {
		x.parts = append(x.parts, part{ends: []string{refusedEnd}, least: 1 - x.aborted, most: 1 - x.aborted})
		return x
	}
	for i := range why.Outcomes {
		o := &why.Outcomes[i]
		if o.Idle {
			continue
		}
		p := part{ends: endsOf(o), most: 1 - x.aborted, outcome: o}
		if o.Share != nil {
			p.least = *o.Share / 100 * (1 - x.aborted)
			p.most = p.least
		}
		x.parts = append(x.parts, p)
	}
	return x
}

// shareIn reads "all requests" and "12.5% of the requests".
func shareIn(text string) float64 {
	percent, _, found := strings.Cut(text, "%")
	if !found {
		return 1
	}
	share, _ := strconv.ParseFloat(percent, 64)
	return share / 100
}

// endsOf lists where requests for an outcome may end.
func endsOf(o *explain.Outcome) []string {
	switch o.Verdict {
	case explain.Refused:
		return []string{refusedEnd}
	case explain.Unreachable:
		return []string{nowhere}
	}
	versions := []string{"v1"}
	service, _, _ := strings.Cut(o.Destination.Name, "-")
	if service == "reviews" {
		versions = []string{"v1", "v2", "v3"}
		if o.Subset != "" {
			versions = []string{strings.TrimPrefix(o.Subset, "version-")}
		}
	}
	var ends []string
	for _, v := range versions {
		ends = append(ends, o.Cluster+" "+service+"-"+v)
	}
	return ends
}

// requests is how many to send so that each part that must be seen is, but for a chance.
func (x *expectation) requests() int {
	count := 10
	for _, p := range x.parts {
		if p.least > 0 && p.least < 1 {
			count = max(count, divided, int(math.Ceil(math.Log(chance)/math.Log(1-max(p.least, leastShare/2)))))
		}
	}
	return count
}

// differs compares the shares of requests with those that were said. The bound is Hoeffding's.
func (x *expectation) differs(got map[string]end, count int) error {
	margin := math.Sqrt(math.Log(2/chance) / (2 * float64(count)))
	var err error
	total := 0
	for name, end := range got {
		total += end.count
		if !slices.ContainsFunc(x.parts, func(p part) bool { return p.most > 0 && slices.Contains(p.ends, name) }) {
			err = errors.Join(err, fmt.Errorf("%d of %d requests: %s", end.count, count, name))
		}
	}
	if total != count {
		err = errors.Join(err, fmt.Errorf("%d of %d requests ended", total, count))
	}
	for _, p := range x.parts {
		seen := 0
		for _, name := range p.ends {
			seen += got[name].count
		}
		most := 0.0
		for _, other := range x.parts {
			if slices.ContainsFunc(other.ends, func(name string) bool { return slices.Contains(p.ends, name) }) {
				most += other.most
			}
		}
		share := float64(seen) / float64(count)
		if seen == 0 && p.least > 0 || share < p.least-margin || share > most+margin {
			err = errors.Join(err, fmt.Errorf("%d of %d requests: %v, want from %.3f to %.3f", seen, count, p.ends, p.least, most))
		}
	}
	return err
}

// headersDiffer compares the headers of requests that arrived, and of their answers, with those that
// were sent and the changes that were said.
func headersDiffer(a ask, why *explain.Why, got map[string]end) (err error) {
	var text string
	if why.Route != nil {
		for _, s := range why.Route.Settings {
			if s.Name == "headers" {
				text = s.Value
			}
		}
	}
	for name, end := range got {
		if end.echo.Headers == nil {
			continue
		}
		outcomes := outcomesAt(why, name)
		if len(outcomes) != 1 {
			continue // of two, it is not known which it was
		}
		all := text + "; " + outcomes[0].Headers
		for _, h := range []string{"X-User", "X-Secret", "X-Other", "X-Added", "X-Target"} {
			want, have := afterwards(all, "request", h, a.headers), strings.Join(end.echo.Headers.Values(h), ",")
			if want != have {
				err = errors.Join(err, fmt.Errorf("%s: header %s arrives as %q, want %q", name, h, have, want))
			}
		}
		answer := header("Content-Type", "application/json")
		for _, h := range []string{"X-Answer", "Content-Type"} {
			want, have := afterwards(all, "response", h, answer), strings.Join(end.headers.Values(h), ",")
			if want != have {
				err = errors.Join(err, fmt.Errorf("%s: header %s of the answer is %q, want %q", name, h, have, want))
			}
		}
		if end.echo.Method != a.method || end.echo.Path != a.path {
			err = errors.Join(err, fmt.Errorf("%s: %s %s arrives", name, end.echo.Method, end.echo.Path))
		}
	}
	return err
}

// outcomesAt are those of which requests may end somewhere.
func outcomesAt(why *explain.Why, name string) (out []explain.Outcome) {
	for i := range why.Outcomes {
		if o := &why.Outcomes[i]; !o.Idle && slices.Contains(endsOf(o), name) {
			out = append(out, *o)
		}
	}
	return out
}

// afterwards is what becomes of a header by changes such as "request + a=b,c=d; request - e".
func afterwards(changes, what, name string, sent http.Header) string {
	values := sent.Values(name)
	for change := range strings.SplitSeq(changes, "; ") {
		if list, found := strings.CutPrefix(change, what+" - "); found && slices.ContainsFunc(strings.Split(list, ","), func(n string) bool { return strings.EqualFold(n, name) }) {
			values = nil
		}
	}
	for change := range strings.SplitSeq(changes, "; ") {
		list, found := strings.CutPrefix(change, what+" + ")
		if !found {
			continue
		}
		for pair := range strings.SplitSeq(list, ",") {
			if key, value, _ := strings.Cut(pair, "="); strings.EqualFold(key, name) {
				values = append(slices.Clone(values), value)
			}
		}
	}
	return strings.Join(values, ",")
}
