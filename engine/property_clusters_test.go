package engine_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changeCluster gives a service more labels, takes its endpoints away, has the mesh
// trust other roots, or its control plane collect changes for another time, or gives pods
// other service accounts or another trust domain.
func (w *randomWorld) changeCluster() {
	at := w.r.Intn(len(w.base.Clusters))
	c := *w.base.Clusters[at]
	if min(len(c.Services), len(c.Deployments), len(c.Pods)) == 0 {
		return
	}
	switch w.r.Intn(7) {
	case 0:
		c = *withRoots(&c, []string{"", "garbage", someRoots()[0], someRoots()[1], someRoots()[0] + someRoots()[1]}[w.r.Intn(5)])
	case 3:
		c.Services = slices.Clone(c.Services)
		i := w.r.Intn(len(c.Services))
		s := c.Services[i].DeepCopy()
		s.Labels = map[string]string{"federated": fmt.Sprint(w.r.Intn(2) == 0)}
		c.Services[i] = s
	case 4:
		c = *withEnv(&c, "PILOT_DEBOUNCE_AFTER", []string{"", "100ms", "1s", "garbage", "1h"}[w.r.Intn(5)])
	case 5:
		c = *w.withAccount(&c)
	case 6:
		c = *withTrustDomain(&c, []string{"", c.Name + ".example", "other.example"}[w.r.Intn(3)])
	case 1:
		c.EndpointSlices = without(w.r, c.EndpointSlices)
	default:
		// Other labels on a pod template, which those of another one may include.
		c.Deployments = slices.Clone(c.Deployments)
		i := w.r.Intn(len(c.Deployments))
		d := c.Deployments[i].DeepCopy()
		labels := d.Spec.Template.Labels
		if w.r.Intn(2) == 0 {
			delete(labels, []string{"app", "version"}[w.r.Intn(2)])
		} else if labels["version"] != "" {
			labels["extra"] = fmt.Sprint(w.r.Intn(2))
		}
		c.Deployments[i] = d
	}
	base := *w.base
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

// withAccount is a cluster in which a template or a pod has another service account, or no
// pod stands behind an endpoint any more.
func (w *randomWorld) withAccount(c *snapshot.Cluster) *snapshot.Cluster {
	out := *c
	account := fmt.Sprint("account-", w.r.Intn(3))
	switch w.r.Intn(3) {
	case 0:
		out.Deployments = slices.Clone(c.Deployments)
		at := w.r.Intn(len(out.Deployments))
		out.Deployments[at] = out.Deployments[at].DeepCopy()
		out.Deployments[at].Spec.Template.Spec.ServiceAccountName = account
	case 1:
		out.Pods = slices.Clone(c.Pods)
		at := w.r.Intn(len(out.Pods))
		out.Pods[at] = out.Pods[at].DeepCopy()
		out.Pods[at].Spec.ServiceAccountName = account
	default:
		out.Pods = without(w.r, c.Pods)
	}
	return &out
}

// withTrustDomain is a cluster whose meshes are of a trust domain; none is set if it is
// empty.
func withTrustDomain(c *snapshot.Cluster, domain string) *snapshot.Cluster {
	out := *c
	out.ConfigMaps = slices.Clone(c.ConfigMaps)
	for i, m := range c.ConfigMaps {
		if m.Name != "istio" {
			continue
		}
		out.ConfigMaps[i] = m.DeepCopy()
		out.ConfigMaps[i].Data = map[string]string{"mesh": "trustDomain: " + domain + "\n"}
	}
	return &out
}

// withEnv is a cluster whose control planes have an environment variable; none if the
// value is empty.
func withEnv(c *snapshot.Cluster, name, value string) *snapshot.Cluster {
	out := *c
	out.Deployments = slices.Clone(c.Deployments)
	for i, d := range c.Deployments {
		if d.Labels["app"] != "istiod" || len(d.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		d = d.DeepCopy()
		pilot := &d.Spec.Template.Spec.Containers[0]
		pilot.Env = slices.DeleteFunc(pilot.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if value != "" {
			pilot.Env = append(pilot.Env, corev1.EnvVar{Name: name, Value: value})
		}
		out.Deployments[i] = d
	}
	return &out
}

func (w *randomWorld) freeze() {
	at := w.r.Intn(len(w.base.Clusters))
	c := *w.base.Clusters[at]
	c.Sync = []snapshot.Sync{snapshot.Stale, snapshot.Synced}[w.r.Intn(2)]
	base := *w.base
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

func (w *randomWorld) failWrite() {
	w.fails = nil
	if len(w.traffic) > 0 && w.r.Intn(2) == 0 {
		w.fails = []snapshot.Failure{{
			Ref:    snapshot.Ref{Kind: snapshot.VirtualService, Cluster: enginetest.Cluster(0), Namespace: "team-000", Name: "x"},
			Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: "refused"}, Parents: []snapshot.Ref{snapshot.RefOf(snapshot.TrafficPolicy, w.traffic[0])},
		}}
	}
}
