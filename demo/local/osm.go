package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proc"
)

const (
	osmNamespace   = "osm-system"
	osmMesh        = "osm"
	osmTrustDomain = "cluster.local"
	osmWebhook     = "osm-validator-mesh-osm"
)

// OSMOptions describe an installation of Open Service Mesh.
type OSMOptions struct {
	// Helper is the path of its binary (helper.BuildOSM).
	Helper string
	// Permissive allows all calls, whatever the policies are.
	Permissive bool
}

// InstallOSM installs Open Service Mesh: its CRDs, the objects that its chart and
// its bootstrap would create, and osm-controller as a process outside the
// cluster. It returns when the controller serves proxies and validates objects.
// There is no injector: a pod must be created with the labels and the sidecar that
// make it a member.
func (c *Cluster) InstallOSM(ctx context.Context, opts OSMOptions) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := c.Client()
	if err != nil {
		return err
	}
	objects, err := osmOn(c).osmObjects(ctx, opts)
	if err != nil {
		return err
	}
	if err := client.Apply(ctx, objects...); err != nil {
		return err
	}
	pod, err := osmOn(c).osmPod(ctx, client)
	if err != nil {
		return err
	}
	return c.onFreePorts(func() error {
		if err := c.startProcess(ctx, proc.Spec{
			Name: OSMController, Path: opts.Helper, Args: append([]string{OSMController}, osmOn(c).osmArgs(pod)...),
			Dir: c.path("."), Log: c.path("logs", OSMController+".log"),
		}); err != nil {
			return err
		}
		return osmOn(c).waitOSM(ctx)
	})
}

// osmInstall installs Open Service Mesh in a cluster.
type osmInstall struct{ *Cluster }

func osmOn(c *Cluster) osmInstall { return osmInstall{c} }

// osmObjects are the objects to install, CRDs first.
func (c osmInstall) osmObjects(ctx context.Context, opts OSMOptions) ([]*unstructured.Unstructured, error) {
	definitions := filepath.Join(filepath.Dir(opts.Helper), "crds")
	files, err := filepath.Glob(filepath.Join(definitions, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("cluster %s: Open Service Mesh: no CRDs in %s; use the binary of helper.BuildOSM", c.Name(), definitions)
	}
	var documents []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: Open Service Mesh: %w", c.Name(), err)
		}
		documents = append(append(documents, data...), "\n---\n"...)
	}
	objects, err := kube.Decode(append(documents, manifests.OSM()...))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: Open Service Mesh: %w", c.Name(), err)
	}
	version, err := exec.CommandContext(ctx, opts.Helper, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: Open Service Mesh: asking %s for its version: %w", c.Name(), opts.Helper, err)
	}
	for _, obj := range objects {
		switch obj.GetKind() {
		case "MeshConfig":
			err = unstructured.SetNestedField(obj.Object, opts.Permissive, "spec", "traffic", "enablePermissiveTrafficPolicyMode")
		case "Deployment":
			err = setImageTag(obj, strings.TrimSpace(string(version)))
		}
		if err != nil {
			return nil, fmt.Errorf("cluster %s: Open Service Mesh: %s: %w", c.Name(), obj.GetKind(), err)
		}
	}
	return objects, nil
}

// setImageTag adds the tag to the images of a Deployment.
func setImageTag(deployment *unstructured.Unstructured, tag string) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return err
	}
	for _, one := range containers {
		container, ok := one.(map[string]any)
		if !ok {
			return errors.New("a container is not an object")
		}
		container["image"] = fmt.Sprintf("%v:%s", container["image"], tag)
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// osmPod waits for the pod that represents the controller: the controller's
// Kubernetes events refer to it.
func (c osmInstall) osmPod(ctx context.Context, client *kube.Client) (name string, err error) {
	what := fmt.Sprintf("cluster %s: waiting for the pod of %s", c.Name(), OSMController)
	err = kube.Until(ctx, what, func(ctx context.Context) error {
		pods, err := client.List(ctx, kube.Pods(), osmNamespace)
		if err != nil {
			return err
		}
		if len(pods) == 0 {
			return errors.New("there is no such pod")
		}
		name = pods[0].GetName()
		return nil
	})
	return name, err
}

func (c osmInstall) osmArgs(pod string) []string {
	return []string{
		"--kubeconfig=" + c.pki.file("osm-controller.kubeconfig"), "--pod=" + pod,
		"--osm-namespace=" + osmNamespace, "--mesh-name=" + osmMesh, "--trust-domain=" + osmTrustDomain,
		"--validator-webhook-config=" + osmWebhook,
		"--ads-port=" + strconv.Itoa(c.port("osm-ads")),
		"--webhook-port=" + strconv.Itoa(c.port("osm-webhook")),
		"--http-port=" + strconv.Itoa(c.port("osm-http")),
	}
}

// waitOSM waits until the controller has read the cluster and both of its servers listen.
func (c osmInstall) waitOSM(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	url := "http://" + c.address("osm-http") + "/health/ready"
	return readinessOf(c.Cluster).waitRole(ctx, OSMController, func(ctx context.Context) error {
		if err := kube.GetOK(ctx, url); err != nil {
			return err
		}
		if _, err := client.Get(ctx, kube.Webhooks("validatingwebhookconfigurations"), "", osmWebhook); err != nil {
			return err
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", c.address("osm-webhook"))
		if err != nil {
			return fmt.Errorf("its webhook: %w", err)
		}
		return connection.Close()
	}, OSMController)
}
