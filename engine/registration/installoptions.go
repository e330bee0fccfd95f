package registration

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/engine/cluster"
)

// InstallOptions configure Install.
type InstallOptions struct {
	// Config is the client configuration of the management cluster, with the permissions of an
	// administrator, and Context what messages call it; optional.
	Config  *rest.Config
	Context string
	// Namespace of the management plane; cluster.DefaultNamespace if empty.
	Namespace string
	// What follows is as it was installed before where it is not set.

	// Image of meshctl to run: if empty, that of Version, of the repository from which it was
	// installed before or else DefaultRepository, below Registry if that is set.
	Image, Registry string
	// PullSecrets are the Secrets to pull it with.
	PullSecrets []string
	// Version is that of this meshctl: a tag of its images. Empty for a build that has none.
	Version string
	// Replicas of serve: one works and the others stand by; DefaultReplicas at first. 0 of what is
	// installed is not taken for unset: somebody has stopped serve.
	Replicas  *int32
	Resources Resources
	// ServiceMonitor has the Prometheus operator scrape serve.
	ServiceMonitor *bool
	// Relay is how agents reach serve.
	Relay InstallRelay
	// Webhook is how API servers ask serve about what users write.
	Webhook InstallWebhook
	// Upgrade: it is an error if nothing is installed.
	Upgrade bool
	// Wait bounds the wait until all replicas are ready; zero does not wait.
	Wait time.Duration
	// Progress gets a sentence for each step and each long wait; nil for none.
	Progress func(string)
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration

	// repository is that of the image which is installed.
	repository string
}

// DefaultRepository has the images of meshctl, with their versions as tags.
const DefaultRepository = "meshctl/meshctl"

// DefaultReplicas is one that works and one that stands by.
const DefaultReplicas = 2

// Resources of a replica; empty fields are those of DefaultResources.
type Resources struct {
	CPURequest, MemoryRequest, MemoryLimit string
}

// DefaultResources are for a thousand services in ten clusters; serve logs what it uses.
func DefaultResources() Resources {
	return Resources{CPURequest: "100m", MemoryRequest: "256Mi", MemoryLimit: "1Gi"}
}

// lists are the resources as Kubernetes has them, after complete has checked them. There is no limit of
// CPU: a leader that is throttled loses the Lease.
func (r Resources) lists() (requests, limits corev1.ResourceList) {
	requests = corev1.ResourceList{
		corev1.ResourceCPU: resourceapi.MustParse(r.CPURequest), corev1.ResourceMemory: resourceapi.MustParse(r.MemoryRequest),
	}
	return requests, corev1.ResourceList{corev1.ResourceMemory: resourceapi.MustParse(r.MemoryLimit)}
}

func (r *Resources) complete() error {
	usual := DefaultResources()
	for _, f := range []struct {
		name     string
		value    *string
		fallback string
	}{
		{"CPU request", &r.CPURequest, usual.CPURequest},
		{"memory request", &r.MemoryRequest, usual.MemoryRequest},
		{"memory limit", &r.MemoryLimit, usual.MemoryLimit},
	} {
		orDefault(f.value, f.fallback)
		if quantity, err := resourceapi.ParseQuantity(*f.value); err != nil || quantity.Sign() <= 0 {
			return fmt.Errorf("%s %q: want a quantity such as %s", f.name, *f.value, f.fallback)
		}
	}
	if request, limit := resourceapi.MustParse(r.MemoryRequest), resourceapi.MustParse(r.MemoryLimit); request.Cmp(limit) > 0 {
		return fmt.Errorf("memory request %s: want at most the limit of %s", r.MemoryRequest, r.MemoryLimit)
	}
	return nil
}

// complete sets defaults and rejects invalid values.
func (o *InstallOptions) complete() error {
	orDefault(&o.Namespace, cluster.DefaultNamespace)
	if o.Replicas == nil {
		o.Replicas = ptr.To[int32](DefaultReplicas)
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	switch {
	case len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("namespace %q: want lower-case letters, digits and hyphens, at most 63", o.Namespace)
	case *o.Replicas < 0:
		return fmt.Errorf("replicas %d: want 1 or more", *o.Replicas)
	case o.Image != "" && (strings.ContainsAny(o.Image, " \t\n") || o.Registry != ""):
		return fmt.Errorf("image %q: want a reference such as %s:1.0.0, and no registry beside it", o.Image, DefaultRepository)
	case len(validation.IsValidLabelValue(o.Version)) > 0:
		return fmt.Errorf("version %q: it must be usable as the tag of an image", o.Version)
	}
	if err := o.completeImage(); err != nil {
		return err
	}
	if err := o.Relay.complete(); err != nil {
		return err
	}
	if err := o.Webhook.complete(o.Namespace); err != nil {
		return err
	}
	return o.Resources.complete()
}

// completeImage names the image of this version.
func (o *InstallOptions) completeImage() error {
	if o.Image != "" {
		return nil
	}
	if o.Version == "" {
		return errors.New("image: this build of meshctl has no version, so there is no image of it; name one with --image")
	}
	repository := cmp.Or(o.repository, DefaultRepository)
	if o.Registry != "" {
		repository = strings.TrimSuffix(o.Registry, "/") + "/" + DefaultRepository
	}
	o.Image = repository + ":" + o.Version
	return nil
}

// inherit takes what is not set from what is installed.
func (o *InstallOptions) inherit(d *appsv1.Deployment, monitored bool) {
	if o.Replicas == nil {
		o.Replicas = d.Spec.Replicas
	}
	for n := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[n]
		if c.Name != serveContainer {
			continue
		}
		o.repository = repositoryOf(c.Image)
		orQuantity(&o.Resources.CPURequest, c.Resources.Requests, corev1.ResourceCPU)
		orQuantity(&o.Resources.MemoryRequest, c.Resources.Requests, corev1.ResourceMemory)
		orQuantity(&o.Resources.MemoryLimit, c.Resources.Limits, corev1.ResourceMemory)
	}
	if o.PullSecrets == nil {
		for _, ref := range d.Spec.Template.Spec.ImagePullSecrets {
			o.PullSecrets = append(o.PullSecrets, ref.Name)
		}
	}
	if o.ServiceMonitor == nil {
		o.ServiceMonitor = &monitored
	}
}

func orQuantity(value *string, list corev1.ResourceList, name corev1.ResourceName) {
	if quantity, set := list[name]; set {
		orDefault(value, quantity.String())
	}
}

// repositoryOf is an image without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	return image
}
