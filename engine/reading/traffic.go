package reading

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

const (
	// maxReport is the largest report that is read, in bytes, and reportTime how long it may take.
	maxReport  = 64 << 20
	reportTime = 15 * time.Second
	// evidenceTime is how long it may take where other answers wait for it.
	evidenceTime = 5 * time.Second
	// metricsPort and metricsPortName are of the pods that registration makes.
	metricsPort     = 9091
	metricsPortName = "metrics"
)

// Traffic asks the meshctl serve that leads for a report on what proxies count: at Server, or if that is empty in its pod, by port-forward.
// That is the one that the Lease names.
func (m Management) Traffic(ctx context.Context, q traffic.Query) (*traffic.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	data, err := m.page(ctx, telemetry.Path+"?"+telemetry.Parameters(q).Encode())
	if err != nil {
		return nil, err
	}
	report := &traffic.Report{}
	if err := json.Unmarshal(data, report); err != nil {
		return nil, fmt.Errorf("meshctl serve: its answer is no report on traffic: %w; check that its version is the one of this meshctl", err)
	}
	return report, nil
}

// page reads a page beside the metrics of the meshctl serve that leads, or of the one at Server.
func (m Management) page(ctx context.Context, path string) ([]byte, error) {
	if m.Server != "" {
		return get(ctx, strings.TrimSuffix(m.Server, "/")+path)
	}
	return m.fromLeader(ctx, path)
}

// Evidence is what proxies have counted in the last 15 minutes, for answers to show, or why it cannot be had.
func (m Management) Evidence(ctx context.Context) *explain.Evidence {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	report, err := m.Traffic(ctx, traffic.Query{By: traffic.ByAll, Window: traffic.Kept})
	if err != nil {
		return &explain.Evidence{Unknown: kube.Text(err)}
	}
	return &explain.Evidence{Report: report}
}

// get reads a page of a serve that is reached directly.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("meshctl serve: %w; want the address of its --metrics-bind, such as http://127.0.0.1:9091", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("meshctl serve: %w; check that it runs, and that this is the address of its --metrics-bind", err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("meshctl serve: reading its answer: %w; ask again", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("meshctl serve: it answers %s: %s", response.Status, strings.TrimSpace(string(data[:min(len(data), 300)])))
	}
	return data, nil
}

// fromLeader reads a page of the pod that holds the Lease.
func (m Management) fromLeader(ctx context.Context, path string) ([]byte, error) {
	client, err := kube.NewClientset(m.Config)
	if err != nil {
		return nil, err
	}
	lease, err := client.CoordinationV1().Leases(m.Namespace).Get(ctx, cluster.LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Lease %s/%s: there is none, so no meshctl serve leads; start one, or name another namespace with --namespace", m.Namespace, cluster.LeaseName)
	case err != nil:
		return nil, fmt.Errorf("management cluster %s: Lease %s/%s: %w; or name meshctl serve with --server", m.Config.Host, m.Namespace, cluster.LeaseName, kube.WithNextStep(err))
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return nil, fmt.Errorf("Lease %s/%s: no meshctl serve holds it; start one", m.Namespace, cluster.LeaseName)
	}
	host, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod, err := client.CoreV1().Pods(m.Namespace).Get(ctx, host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("meshctl serve: the one that leads runs outside of the cluster, on %s; name the address of its --metrics-bind with --server, such as http://127.0.0.1:9091", host)
	}
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: pod %s/%s of meshctl serve: %w; or name it with --server", m.Config.Host, m.Namespace, host, kube.WithNextStep(err))
	}
	port := uint32(metricsPort)
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.Name == metricsPortName {
				port = uint32(p.ContainerPort)
			}
		}
	}
	config := kube.Unlimited(m.Config)
	config.Timeout = 0
	data, err := kube.GetFromPod(ctx, config, m.Namespace, host, port, strings.TrimPrefix(path, "/"), maxReport)
	if err != nil {
		if !kube.MayForward(ctx, m.Config, m.Namespace, host) {
			return nil, fmt.Errorf("pod %s/%s of meshctl serve: you may not create pods/portforward there: ask its administrator for that right, or name the address of its metrics with --server", m.Namespace, host)
		}
		return nil, fmt.Errorf("pod %s/%s of meshctl serve: reading its page by port-forward: %w; see its log", m.Namespace, host, err)
	}
	return data, nil
}
