package serve

import (
	"context"
	"errors"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Clusters connects the management cluster and the registered ones: each cluster
// in the registry is read by the Source and, if there is a Sink, written by it.
type Clusters struct {
	Source *watch.Source

	namespace string
	registry  *cluster.Registry
	// sink is nil where nothing is written, and observer where nothing is compared.
	sink     *apply.Sink
	observer *apply.Observer
	// fence is what writes go through; nil if there is none.
	fence *fence
	// configs are the configurations of the registered clusters, nil for those that have none, and identities what is known of them.
	configs    map[string]*rest.Config
	identities map[string]types.UID
	// hub is where agents dial; nil if none can.
	hub *hub.Hub
	// runnables are told how to reach the clusters; nil if there are none.
	runnables *runnables

	// refused are the Secrets that are not used; refusedChanged says that they changed.
	refusedChanged chan struct{}
	mu             sync.Mutex
	refused        map[string]refusal
}

// refusal is a Secret that is not used.
type refusal struct {
	why snapshot.Failure
	// credential is its fingerprint.
	credential string
}

// ClusterOptions configure Clusters.
type ClusterOptions struct {
	watch.Options
	// UserAgent is sent to registered clusters.
	UserAgent string
	// Sink writes to all clusters; nil where nothing is written.
	Sink *apply.Sink
	// Observer compares what was written with what follows; nil if nobody does.
	Observer *apply.Observer
	// Detour is for those who only read, from elsewhere than serve; nil for none.
	Detour cluster.Detour

	// fence is what writes to registered clusters go through; nil if there is none.
	fence *fence
}

// NewClusters prepares the connections without I/O.
func NewClusters(o ClusterOptions) (*Clusters, error) {
	registry, err := cluster.NewRegistry(o.Management, o.Namespace, o.UserAgent, o.Log, o.Detour)
	if err != nil {
		return nil, err
	}
	o.RegistrySynced = registry.Synced()
	source, err := watch.New(o.Options)
	if err != nil {
		return nil, err
	}
	return &Clusters{
		Source: source, namespace: o.Namespace, registry: registry, sink: o.Sink, observer: o.Observer, fence: o.fence, configs: map[string]*rest.Config{},
		identities:     map[string]types.UID{},
		refusedChanged: make(chan struct{}, 1), refused: map[string]refusal{},
	}, nil
}

// Run runs the registry, the Source and the Sink until ctx ends.
func (c *Clusters) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if c.sink != nil {
		c.sink.Set("", c.Source.Link(""))
		group.Go(func() error { c.sink.Run(ctx); return nil })
	}
	group.Go(func() error { return c.Source.Run(ctx) })
	group.Go(func() error { return c.registry.Run(ctx, handler{c}) })
	return group.Wait()
}

// Credentials returns the lifetimes of the stored credentials, ascending by cluster.
func (c *Clusters) Credentials() []cluster.CredentialStatus { return c.registry.Credentials() }

// setFailures passes on the Secrets that are not used, while what they led to before is, and
// other failures. Only then it says whose turn it was: the other way round, those Secrets would
// seem to be in use for a moment.
func (c *Clusters) setFailures(others []snapshot.Failure) {
	c.mu.Lock()
	refused := maps.Clone(c.refused)
	c.mu.Unlock()
	for _, r := range refused {
		others = append(others, r.why)
	}
	c.Source.SetFailures(others)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, r := range refused {
		if now := c.refused[name]; r.credential != "" && now.credential == r.credential && now.why.Reason == r.why.Reason {
			c.Source.SetCredential(name, r.credential)
		}
	}
}

// refuse notes why the Secret of a cluster is not used; nil if it is.
func (c *Clusters) refuse(name string, why error) {
	c.mu.Lock()
	before := c.refused[name]
	delete(c.refused, name)
	if why != nil {
		c.refused[name] = refusal{c.failure(name, snapshot.SecretRefused, why), before.credential}
	}
	c.mu.Unlock()
	c.notifyRefused()
}

func (c *Clusters) notifyRefused() {
	select {
	case c.refusedChanged <- struct{}{}:
	default:
	}
}

// credentialObserved notes which Secret the state of a cluster is about. If that is refused, the Source is
// told with the failure.
func (c *Clusters) credentialObserved(name, credential string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, refused := c.refused[name]
	if !refused {
		c.Source.SetCredential(name, credential)
		return
	}
	r.credential = credential
	c.refused[name] = r
	c.notifyRefused()
}

// failure is what is wrong with a registered cluster.
func (c *Clusters) failure(name string, code snapshot.Code, why error) snapshot.Failure {
	return snapshot.Failure{
		Ref:    snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: c.namespace, Name: name},
		Reason: snapshot.ReasonOf(code, why),
	}
}

// handler passes the registered clusters to the Source and the Sink.
type handler struct{ *Clusters }

// Set implements cluster.Handler.
func (h handler) Set(m cluster.Connection) {
	h.refuse(m.Name, m.Refused)
	linked := h.Source.Link(m.Name)
	config := h.connect(m)
	h.identify(m.Name, func() { h.identities[m.Name] = m.UID })
	before := h.configs[m.Name]
	h.configs[m.Name] = config
	if link := h.Source.Link(m.Name); link != linked && link != nil { // there is none while the Source ends
		if h.sink != nil {
			h.sink.Set(m.Name, link)
		}
		if h.observer != nil {
			h.observer.Set(m.Name, link)
		}
	}
	switch {
	case h.sink == nil || config == before:
	case config == nil:
		h.runnables.remove(m.Name)
	default:
		h.runnables.set(m.Name, h.fence.guard(config))
	}
}

// errNoRelay is why a cluster cannot be reached that is to be reached through its agent.
var errNoRelay = errors.New("it has no kubeconfig Secret, and is to be reached through its agent; meshctl serve takes no agents here: start it with --relay-bind, or register the cluster with a kubeconfig")

// errOnlyByAgent is why a cluster cannot be reached by who only reads.
var errOnlyByAgent = errors.New("it is reached through its agent, which speaks to meshctl serve only")

// connect has the Source read a cluster, and returns how to reach it; nil if it cannot be reached.
func (h handler) connect(m cluster.Connection) *rest.Config {
	switch {
	case m.Relayed && h.hub == nil && h.sink == nil:
		h.Source.Set(m.Name, m.Domain, nil, errOnlyByAgent)
		return nil
	case m.Relayed && h.hub == nil:
		h.Source.Set(m.Name, m.Domain, nil, errNoRelay)
		return nil
	case m.Relayed:
		config, err := h.hub.Add(h.Source, m.Name, m.Domain)
		if err != nil {
			h.Source.Set(m.Name, m.Domain, nil, err)
		}
		return config
	}
	if h.hub != nil {
		h.hub.Remove(m.Name)
	}
	h.Source.Set(m.Name, m.Domain, m.Config, m.Err)
	if m.Err != nil {
		return nil
	}
	return m.Config
}

// witness is told what stands in a cluster; nil if that is not reached through its agent.
func (c *Clusters) witness(name string) apply.Witness {
	if c.hub == nil || name == "" {
		return nil
	}
	return c.hub.Standing(name)
}

// Renewed implements cluster.Handler.
func (h handler) Renewed(name string) {
	h.Source.Renewed(name)
	if h.sink != nil {
		h.sink.Renewed(name)
	}
}

// CredentialObserved implements cluster.Handler.
func (h handler) CredentialObserved(name, fingerprint string) {
	h.credentialObserved(name, fingerprint)
}

// identify passes on the identities of the registered clusters if one changes.
func (h handler) identify(name string, change func()) {
	before, known := h.identities[name]
	change()
	if now, still := h.identities[name]; h.sink != nil && (now != before || known != still) {
		h.sink.Identify(maps.Clone(h.identities))
	}
}

// Remove implements cluster.Handler.
func (h handler) Remove(name string) {
	delete(h.configs, name)
	h.identify(name, func() { delete(h.identities, name) })
	h.refuse(name, nil)
	if h.hub != nil {
		h.hub.Remove(name)
	}
	h.Source.Remove(name)
	h.runnables.remove(name)
	if h.observer != nil {
		h.observer.Remove(name)
	}
	if h.sink != nil {
		h.sink.Remove(name)
	}
}
