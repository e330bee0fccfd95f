package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/pool"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// machine is what a run has of this machine: the pool, what it can do, and its load.
type machine struct {
	shard    shard.Name
	dir      string
	guard    *proc.Guard
	listener net.Listener
	pool     *pool.Pool
	pace     waittest.Pace

	mu sync.Mutex
	// reports are what the pool says that tests did and must not.
	reports []string
	samples []sample
	stop    context.CancelFunc
	stopped chan struct{}
}

// sample is the load of the machine at one time.
type sample struct {
	at time.Time
	// runnable is how many processes run or wait for a core.
	runnable float64
}

func startMachine(ctx context.Context, name shard.Name) (m *machine, err error) {
	progress := helper.Progress{Report: func(message string) { fmt.Println("building Kubernetes and Istio:", message) }, Every: 30 * time.Second}
	binary, err := helper.Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	if name == shard.OSM {
		progress.Report = func(message string) { fmt.Println("building Open Service Mesh:", message) }
		if _, err := helper.BuildOSM(ctx, progress); err != nil {
			return nil, err
		}
	}
	guard, err := proc.NewGuard()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			guard.Close()
		}
	}()
	m = &machine{shard: name, stopped: make(chan struct{}), guard: guard}
	if m.dir, err = os.MkdirTemp("", "testrun-"); err != nil {
		return nil, err
	}
	if err := m.guard.Remove(m.dir); err != nil {
		return nil, err
	}
	m.pool = pool.New(pool.Options{
		Dir: filepath.Join(m.dir, "servers"), Helper: binary, Guard: m.guard, PauseAfter: 5 * time.Second,
		Report: m.report, Note: func(said string) { fmt.Println("another API server takes the place of one", said) },
	})
	if m.listener, err = net.Listen("unix", m.socket()); err != nil {
		return nil, fmt.Errorf("pool of API servers: %w", err)
	}
	go func() {
		if err := m.pool.Serve(context.WithoutCancel(ctx), m.listener); err != nil {
			m.report(err.Error())
		}
	}()
	if err := m.measure(ctx); err != nil {
		return nil, err
	}
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	go m.sample(sampling)
	return m, nil
}

func (m *machine) socket() string { return filepath.Join(m.dir, "pool") }

// report keeps what the pool says.
func (m *machine) report(said string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reports = append(m.reports, said)
}

// measured is applied to see how long that takes.
const measured = `
apiVersion: v1
kind: ConfigMap
metadata: {name: measured, namespace: default, labels: {round: "%d"}}
`

// measure sees how long it takes to start a process and to apply an object: what tests wait for is a multiple
// of these.
func (m *machine) measure(ctx context.Context) error {
	start := time.Now()
	loan, err := m.pool.Lend(ctx, pool.Wish{Holder: "measurement", Index: 1})
	if err != nil {
		return err
	}
	defer loan.Return()
	m.pace.Start = time.Since(start)
	cluster, err := local.Open(loan.Dir, nil)
	if err != nil {
		return err
	}
	client, err := cluster.Client()
	if err != nil {
		return err
	}
	const rounds = 20
	start = time.Now()
	for i := range rounds {
		if err := client.ApplyYAML(ctx, fmt.Appendf(nil, measured, i)); err != nil {
			return err
		}
	}
	m.pace.Apply = time.Since(start) / rounds
	fmt.Printf("this machine starts an API server in %s and applies an object in %s: tests wait %s at most\n",
		m.pace.Start.Round(100*time.Millisecond), m.pace.Apply.Round(100*time.Microsecond), m.pace.Limit().Round(time.Second))
	return nil
}

// environment is that of the tests.
func (m *machine) environment(race bool) []string {
	env := append(os.Environ(),
		pool.Variable+"="+m.socket(),
		waittest.Variable+"="+m.pace.String(),
		shard.Variable+"="+string(m.shard),
	)
	if race {
		env = append(env, "CGO_ENABLED=1")
	}
	return env
}

// sample reads the load until the run ends; see proc_loadavg(5).
func (m *machine) sample(ctx context.Context) {
	defer close(m.stopped)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if n, ok := runnable(); ok {
				m.mu.Lock()
				m.samples = append(m.samples, sample{now, n})
				m.mu.Unlock()
			}
		}
	}
}

// runnable is how many processes run or wait for a core; unknown where there is no /proc.
func runnable() (n float64, ok bool) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 0, false
	}
	_, err = fmt.Sscanf(fields[3], "%f/", &n)
	return n - 1, err == nil // this one
}

// load is the mean number of processes that ran or waited for a core in a time.
func (m *machine) load(from, to time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum, n := 0.0, 0
	for _, s := range m.samples {
		if !s.at.Before(from) && !s.at.After(to) {
			sum, n = sum+s.runnable, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// end ends the API servers.
func (m *machine) end() error {
	m.stop()
	<-m.stopped
	err := m.listener.Close()
	m.pool.Close()
	m.guard.Close()
	return err
}
