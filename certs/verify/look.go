package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/kube"
)

const (
	// RootConfigMap is where istiod writes the roots in each namespace, under the key pki.RootCertKey.
	RootConfigMap = "istio-ca-root-cert"
	istiodPort    = "15012"
	pageSize      = 500
	// maxGreetings at once, and how long all of them may take. Those that were not made in time are made by the next look.
	maxGreetings  = 32
	greetingsTime = time.Minute
	maxAsked      = 16
)

// errNoLabels: without labels, every pod of the namespace would be one of the control plane.
var errNoLabels = errors.New("control plane: no labels of its pods are given; set them in spec.trust.controlPlane")

// Options of a Looker.
type Options struct {
	// Client of the cluster. It lists pods and ConfigMaps named istio-ca-root-cert in all namespaces.
	Client kube.Clientset
	// Namespace of the control plane, and the labels of its pods.
	Namespace    string
	ControlPlane map[string]string
	// Address is host:port of a control plane that its pods cannot be asked for, because it runs elsewhere; empty to ask the pods.
	Address string
	// Hosts are names of the control plane in the CA_ADDR of proxies, beside istiod[-REVISION].NAMESPACE.svc.
	Hosts []string
	// TokenFile and ClusterID are described at Server. If ClusterID is empty, it is what the pods of the control plane have.
	TokenFile, ClusterID string
	// Now is the clock.
	Now func() time.Time
	// Greet makes a handshake; nil for Greet of this package.
	Greet func(ctx context.Context, to Target, a *Answer, known pki.Bundle) (*Seen, error)
}

// Looker looks at a mesh from time to time, and need not see again what cannot have changed.
type Looker struct {
	Options
	mesh   mesh
	memory memory
}

// NewLooker makes a Looker.
func NewLooker(o Options) *Looker {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Greet == nil {
		o.Greet = Greet
	}
	return &Looker{Options: o, mesh: mesh{namespace: o.Namespace, controlPlane: labels.SelectorFromSet(o.ControlPlane), hosts: o.Hosts}}
}

// Look looks once, and judges. An error says that the API server could not be read; everything else is in the Result.
func (l *Looker) Look(ctx context.Context, req Request) (Result, error) {
	o, err := l.observe(ctx, req)
	if err != nil {
		return Result{}, err
	}
	result := Judge(req, o)
	for _, bundle := range o.Namespaces {
		result.Known = result.Known.Union(bundle)
	}
	for i := range o.ControlPlane {
		if answer := o.ControlPlane[i].Answer; answer != nil {
			result.Known = result.Known.Union(answer.Bundle)
		}
	}
	return result, nil
}

func (l *Looker) observe(ctx context.Context, req Request) (Observed, error) {
	if len(l.ControlPlane) == 0 {
		return Observed{}, errNoLabels
	}
	replicas, workloads, err := l.pods(ctx)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Workloads: workloads}
	if o.Namespaces, err = l.roots(ctx); err != nil {
		return Observed{}, err
	}
	o.ControlPlane = l.ask(ctx, replicas, o.Namespaces[l.Namespace].Union(req.Secret.Roots))
	l.greet(ctx, req, &o)
	o.Workloads = slices.DeleteFunc(o.Workloads, func(w Workload) bool { return !w.Injected && w.Seen == nil })
	o.Now = l.Now()
	return o, ctx.Err()
}

// Pods are the pods of the control plane that run, and the workloads of its mesh that count.
func (l *Looker) Pods(ctx context.Context) (controlPlane, workloads []Pod, err error) {
	if len(l.ControlPlane) == 0 {
		return nil, nil, errNoLabels
	}
	replicas, found, err := l.pods(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range replicas {
		namespace, name, _ := strings.Cut(replicas[i].Name, "/")
		controlPlane = append(controlPlane, Pod{Namespace: namespace, Name: name})
	}
	for i := range found {
		if w := &found[i]; w.Injected {
			workloads = append(workloads, Pod{w.Namespace, w.Name, w.UID, w.Gateway})
		}
	}
	return controlPlane, workloads, nil
}

// Certificate gets a certificate of the mesh, as its workloads have, with the roots by which they know each other. The identity is that
// of the token.
func (l *Looker) Certificate(ctx context.Context) (*Answer, error) {
	replicas, _, err := l.pods(ctx)
	if err != nil {
		return nil, err
	}
	roots, err := l.roots(ctx)
	if err != nil {
		return nil, err
	}
	why := fmt.Errorf("no pod of istiod in namespace %s; check that it runs, and --istiod-namespace", l.Namespace)
	for _, r := range l.ask(ctx, replicas, roots[l.Namespace]) {
		if r.Err == nil && r.Answer != nil {
			return r.Answer, nil
		}
		why = cmp.Or(r.Err, why)
	}
	return nil, why
}

// pods lists all pods, and keeps of them what counts.
func (l *Looker) pods(ctx context.Context) (replicas []Replica, workloads []Workload, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := l.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, nil, fmt.Errorf("pods: %w; permission to list them in all namespaces is needed", err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if l.mesh.isControlPlane(pod) {
				replicas = append(replicas, newReplica(pod))
			}
			if w, ok := l.mesh.newWorkload(pod, l.Now()); ok {
				workloads = append(workloads, w)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return replicas, workloads, nil
		}
	}
}

// roots reads the ConfigMaps with the roots; one that cannot be read has none.
func (l *Looker) roots(ctx context.Context) (map[string]pki.Bundle, error) {
	out := map[string]pki.Bundle{}
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + RootConfigMap, Limit: pageSize}
	for {
		page, err := l.Client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("ConfigMaps %s: %w; permission to list them in all namespaces is needed", RootConfigMap, err)
		}
		for i := range page.Items {
			if bundle, err := pki.ReadBundle([]byte(page.Items[i].Data[pki.RootCertKey])); err == nil {
				out[page.Items[i].Namespace] = bundle
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// ask asks all of the control plane.
func (l *Looker) ask(ctx context.Context, replicas []Replica, roots pki.Bundle) []Replica {
	if l.Address != "" {
		outside := Replica{Name: l.Address, MultiRoot: multiRoot(replicas)}
		if len(replicas) == 1 {
			outside.Started, outside.clusterID = replicas[0].Started, replicas[0].clusterID
		}
		replicas = []Replica{outside}
	}
	var group errgroup.Group
	group.SetLimit(maxAsked)
	for i := range replicas {
		group.Go(func() error {
			r := &replicas[i]
			r.Answer, r.Err = Ask(ctx, l.Now(), l.server(r, roots))
			var down *downError
			r.Down = errors.As(r.Err, &down)
			return nil
		})
	}
	_ = group.Wait() // the errors are in the replicas
	return replicas
}

func (l *Looker) server(r *Replica, roots pki.Bundle) Server {
	s := Server{Address: l.Address, Roots: roots, TokenFile: l.TokenFile, ClusterID: cmp.Or(l.ClusterID, r.clusterID, defaultClusterID)}
	name := "istiod." + l.Namespace + ".svc"
	if r.revision != "" && r.revision != defaultRevision {
		s.Names = append(s.Names, "istiod-"+r.revision+"."+l.Namespace+".svc")
	}
	s.Names = append(append(s.Names, name), l.Hosts...)
	if l.Address == "" {
		s.Address = net.JoinHostPort(r.ip, istiodPort)
	} else if host, _, err := net.SplitHostPort(l.Address); err == nil && net.ParseIP(host) == nil {
		s.Names = append(s.Names, host)
	}
	return s
}

// greet connects to the workloads that were not seen yet as they have to become.
func (l *Looker) greet(ctx context.Context, req Request, o *Observed) {
	defer l.memory.keep(o.Workloads)
	all, blind := answers(*o)
	l.memory.enter(all, blind)
	if blind {
		return
	}
	known := knownRoots(req, *o, all)
	subjects := uniqueSubjects(known)
	ctx, cancel := context.WithTimeout(ctx, greetingsTime)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(maxGreetings)
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.Gateway || w.ip == "" || len(w.ports) == 0 {
			continue
		}
		if seen, ok := l.memory.recall(w, l.Now()); ok {
			w.Seen = seen
			continue
		}
		group.Go(func() error {
			w.Seen = l.greetOne(ctx, w, all[0], known)
			if ctx.Err() == nil {
				l.memory.remember(w, w.Seen, holds(w.Seen, all[0], subjects), l.Now())
			}
			return nil
		})
	}
	_ = group.Wait() // what was not seen is derived
}

// holds reports whether a workload was seen to hold all that the control plane gives.
func holds(s *Seen, a *Answer, subjects map[string]string) bool {
	if s == nil || s.Presents != a.Root || s.Accepts == Refused {
		return false
	}
	d := world{subjects: subjects}
	all, seen := d.trustsAll(&Workload{Seen: s}, a.Bundle.Fingerprints())
	return all && seen
}

func (l *Looker) greetOne(ctx context.Context, w *Workload, a *Answer, known pki.Bundle) *Seen {
	for _, port := range w.ports {
		to := Target{Address: net.JoinHostPort(w.ip, strconv.Itoa(int(port))), Namespace: w.Namespace, ServiceAccount: w.account}
		if seen, err := l.Greet(ctx, to, a, known); err == nil {
			return seen
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil
}
