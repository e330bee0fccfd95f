package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxDump bounds what is read of one proxy, in bytes, and maxPods how many pods a selector may have: what a proxy and a cluster answer is
// not trusted.
const (
	maxDump = 64 << 20
	maxPods = 20_000
)

// Proxies reads the proxies of pods with the user's own credentials: those of the contexts that lead to the clusters. The credentials that
// serve has may not. It is for one goroutine, and keeps what it has read.
type Proxies struct {
	ctx     context.Context //nolint:containedctx // of one question
	detours *registration.Detours
	uids    map[string]types.UID
	timeout time.Duration
	// relayed are the clusters that are reached through their agents.
	relayed  map[string]bool
	contexts map[string]registration.Context
	pods     map[string][]explain.ProxyPod
	configs  map[string]*configOrError
}

type configOrError struct {
	config *envoy.Config
	err    error
}

// NewProxies prepares to read proxies of registered clusters, without I/O. Timeout bounds each request.
func NewProxies(ctx context.Context, detours *registration.Detours, clusters []*multiclusterv1alpha1.KubernetesCluster, timeout time.Duration) *Proxies {
	p := &Proxies{
		ctx: ctx, detours: detours, timeout: timeout, uids: map[string]types.UID{}, relayed: map[string]bool{},
		contexts: map[string]registration.Context{}, pods: map[string][]explain.ProxyPod{}, configs: map[string]*configOrError{},
	}
	for _, c := range clusters {
		p.uids[c.Name] = types.UID(c.Annotations[cluster.UIDAnnotation])
		p.relayed[c.Name] = c.Status.Connection != nil
	}
	return p
}

// notAsked are the clusters whose proxies cannot be read from here, by name.
func (p *Proxies) notAsked() []explain.NotAsked {
	var out []explain.NotAsked
	for _, name := range slices.Sorted(maps.Keys(p.uids)) {
		if _, err := p.config(name); err != nil {
			out = append(out, explain.NotAsked{Cluster: name, Relayed: p.relayed[name], Reason: err.Error()})
		}
	}
	return out
}

// Sample looks at the proxies of some callers and called services, and asks those of the callers how the gateways of other clusters are.
func Sample(ctx context.Context, index *explain.Index, gateways []explain.CheckedGateway, o Options) *explain.CheckedProxies {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	proxies := NewProxies(ctx, o.Detours, index.Input().Management.KubernetesClusters, o.Timeout)
	out := &explain.CheckedProxies{
		Wanted: o.Proxies, Seed: o.Seed, NotAsked: proxies.notAsked(),
		Answers: explain.SampleProxies(index, o.Proxies, random.IntN, proxies, func() bool { return ctx.Err() != nil }),
	}
	proxies.askAboutGateways(index, out.Answers, gateways)
	return out
}

// Contexts says which context was used for which cluster, ascending: "cluster-1 (context admin@east)".
func (p *Proxies) Contexts() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.contexts)) {
		out = append(out, fmt.Sprintf("%s (context %s)", name, p.contexts[name].Name))
	}
	return out
}

// config finds the user's context for a cluster.
func (p *Proxies) config(name string) (*rest.Config, error) {
	found, known := p.contexts[name]
	if !known {
		list := p.detours.Contexts(p.ctx, p.uids[name])
		if len(list) == 0 {
			return nil, p.noContext(name)
		}
		found = list[0]
		if i := slices.IndexFunc(list, func(c registration.Context) bool { return c.Name == name }); i >= 0 {
			found = list[i]
		}
		p.contexts[name] = found
	}
	config := kube.Unlimited(found.Config)
	config.Timeout = 0
	return config, nil
}

// noContext says why the proxies of a cluster cannot be read, and what to do.
func (p *Proxies) noContext(name string) error {
	switch {
	case p.relayed[name] && p.uids[name] == "":
		return fmt.Errorf("cluster %[1]s: it is reached via relay, its agent reads no proxies, and it is not recorded which context leads there: "+
			"`meshctl cluster register %[1]s --relay --remote-context CONTEXT` records that", name)
	case p.relayed[name]:
		return fmt.Errorf("cluster %s: it is reached via relay, its agent reads no proxies, and no context of your kubeconfig leads there: "+
			"add one, or name another file with --kubeconfig", name)
	}
	return fmt.Errorf("cluster %s: no context of your kubeconfig leads to it, and its proxies are read with your own credential: add one, or name another file with --kubeconfig", name)
}

// Pods is part of explain.Proxies: ready pods come before others.
func (p *Proxies) Pods(clusterName, namespace string, selector map[string]string) ([]explain.ProxyPod, error) {
	text := labels.SelectorFromSet(selector).String()
	key := strings.Join([]string{clusterName, namespace, text}, " ")
	if found, known := p.pods[key]; known {
		return found, nil
	}
	config, err := p.config(clusterName)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClientset(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	var ready, others []explain.ProxyPod
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, o)
	})
	err = pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: text}, func(item runtime.Object) error {
		pod, isPod := item.(*corev1.Pod)
		switch {
		case !isPod || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
		case len(ready)+len(others) == maxPods:
			return fmt.Errorf("more than %d pods run with the labels %s: which of them answer is not evaluated", maxPods, text)
		case isReady(pod):
			ready = append(ready, proxyPod(clusterName, pod))
		default:
			others = append(others, proxyPod(clusterName, pod))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: listing the pods of namespace %s as context %s: %w", clusterName, namespace, p.contexts[clusterName].Name, advised(err, "list pods"))
	}
	out := slices.Concat(ready, others)
	p.pods[key] = out
	return out, nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// proxyPod is what is needed of a pod.
func proxyPod(clusterName string, pod *corev1.Pod) explain.ProxyPod {
	out := explain.ProxyPod{
		Cluster: clusterName, Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Owner: "Pod " + pod.Name,
		Ambient: pod.Annotations["ambient.istio.io/redirection"] == "enabled",
	}
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			out.Owner = o.Kind + " " + o.Name
		}
	}
	for _, ip := range pod.Status.PodIPs {
		out.IPs = append(out.IPs, ip.IP)
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		out.Containers = append(out.Containers, c.Name)
		out.Gateway = out.Gateway || len(c.Args) > 1 && c.Args[0] == "proxy" && c.Args[1] == "router"
	}
	return out
}

// Config is part of explain.Proxies: it reads the admin interface of a pod's Envoy by port-forward. Envoy leaves private keys out of what
// it answers (envoyproxy.io: admin, /config_dump).
func (p *Proxies) Config(pod explain.ProxyPod, port uint32) (*envoy.Config, error) {
	key := pod.String()
	if found := p.configs[key]; found != nil {
		return found.config, found.err
	}
	read := &configOrError{}
	read.config, read.err = p.readConfig(pod, port)
	p.configs[key] = read
	return read.config, read.err
}

func (p *Proxies) readConfig(pod explain.ProxyPod, port uint32) (*envoy.Config, error) {
	config, err := p.config(pod.Cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	data, err := kube.GetFromPod(ctx, config, pod.Namespace, pod.Name, port, "config_dump?include_eds", maxDump)
	if err != nil {
		return nil, fmt.Errorf("pod %s: reading its proxy by port-forward as context %s: %w", &pod, p.contexts[pod.Cluster].Name, p.notForwarded(ctx, err, config, pod))
	}
	read, err := envoy.ParseDump(data)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", &pod, err)
	}
	return read, nil
}

// Patches is part of explain.Proxies.
func (p *Proxies) Patches(pod explain.ProxyPod, kind snapshot.ProxyPatch, namespace string) ([]string, error) {
	config, err := p.config(pod.Cluster)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewClientset(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	data, err := client.CoreV1().RESTClient().Get().AbsPath("apis", kind.Group, kind.Version, "namespaces", namespace, kind.Resource).
		Param("limit", strconv.Itoa(maxPods)).SetHeader("Accept", "application/json").DoRaw(ctx)
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     map[string]json.RawMessage
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err == nil:
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: listing %s of namespace %s: %w", pod.Cluster, kind.Resource, namespace, advised(err, "list "+kind.Resource+"."+kind.Group))
	}
	var out []string
	for i := range list.Items {
		// EnvoyFilter: workloadSelector.labels; WasmPlugin: selector.matchLabels.
		var by struct{ Labels, MatchLabels map[string]string }
		if selector := list.Items[i].Spec[kind.Selector]; len(selector) > 0 && json.Unmarshal(selector, &by) != nil {
			continue
		}
		if hasAll(pod.Labels, by.Labels) && hasAll(pod.Labels, by.MatchLabels) {
			out = append(out, list.Items[i].Metadata.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// hasAll reports whether labels have all that are wanted.
func hasAll(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

// notForwarded says what to do about a page that was not got from a pod.
func (p *Proxies) notForwarded(ctx context.Context, err error, config *rest.Config, pod explain.ProxyPod) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s; check that the API server reaches the node of the pod", p.timeout)
	case apierrors.IsNotFound(err):
		return errors.New("the pod is gone; ask again")
	case !kube.MayForward(ctx, config, pod.Namespace, pod.Name):
		return errors.New(notAllowed("create pods/portforward"))
	}
	var big *kube.TooBigError
	if errors.As(err, &big) {
		return fmt.Errorf("%w; give its namespace a Sidecar object, so that it has only what it calls", err)
	}
	return errors.New(kube.Text(err))
}

func notAllowed(right string) string {
	return "you may not " + right + " there: ask its administrator for that right, or use a context that has it"
}

// advised adds to an error of an API server what to do about it.
func advised(err error, right string) error {
	if apierrors.IsForbidden(err) {
		return errors.New(notAllowed(right))
	}
	return errors.New(kube.Text(err))
}
