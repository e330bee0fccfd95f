package check

import (
	"context"
	"fmt"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxSync bounds what is read of one control plane, in bytes: about one KiB a proxy.
const maxSync = 64 << 20

// Sync is part of explain.Syncs: it asks each pod of a control plane by port-forward, as each knows the proxies that are connected to it.
func (p *Proxies) Sync(mesh *snapshot.MeshPlan) ([]snapshot.SyncedProxy, error) {
	_, installation := snapshot.MeshType(&mesh.Mesh.Spec)
	labels := installation.PodLabels
	if len(labels) == 0 {
		return nil, fmt.Errorf("mesh %s: the labels of its control plane are not known, so that it cannot be asked", mesh.Ref.Name)
	}
	pods, err := p.Pods(mesh.Cluster, mesh.Namespace, labels)
	switch {
	case err != nil:
		return nil, err
	case len(pods) == 0:
		return nil, fmt.Errorf("mesh %s: no pod of its control plane runs in namespace %s of cluster %s, so that it cannot be asked", mesh.Ref.Name, mesh.Namespace, mesh.Cluster)
	}
	var out []snapshot.SyncedProxy
	for i := range pods {
		found, err := p.syncOf(&pods[i], mesh.Dialect.Proxies.Sync)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (p *Proxies) syncOf(pod *explain.ProxyPod, from *snapshot.ProxySync) ([]snapshot.SyncedProxy, error) {
	config, err := p.config(pod.Cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	data, err := kube.GetFromPod(ctx, config, pod.Namespace, pod.Name, from.Port, from.Path, maxSync)
	if err != nil {
		return nil, fmt.Errorf("pod %s: asking the control plane by port-forward as context %s: %w", pod, p.contexts[pod.Cluster].Name, p.notForwarded(ctx, err, config, *pod))
	}
	found, err := from.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod, err)
	}
	return found, nil
}
