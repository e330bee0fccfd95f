package registration

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// VersionsOptions configure Versions.
type VersionsOptions struct {
	Config  *rest.Config
	Context string
	// Namespace of the management plane; cluster.DefaultNamespace if empty.
	Namespace string
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// InstalledVersions are what runs in a management cluster, and how it differs from this meshctl.
type InstalledVersions struct {
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes"`
	// Server is nil if meshctl is not installed in the cluster; it may run elsewhere.
	Server *InstalledServer `json:"server,omitempty"`
	// Served is the version of the serve that wrote the state of a cluster last; empty if none has.
	Served string         `json:"served,omitempty"`
	Types  InstalledTypes `json:"customResourceTypes"`
	// Clusters are the registered ones, ascending.
	Clusters []InstalledAccount `json:"clusters,omitempty"`
}

// InstalledServer is the Deployment of serve.
type InstalledServer struct {
	// Version is that of the meshctl that installed it; empty if that had none.
	Version string `json:"version,omitempty"`
	Image   string `json:"image"`
	// Ready of Replicas run.
	Ready    int32 `json:"ready"`
	Replicas int32 `json:"replicas"`
}

// InstalledTypes counts the custom resource types.
type InstalledTypes struct {
	// Current are as in this meshctl, Other are of another version of it, and Missing are not there.
	Current int      `json:"current"`
	Other   []string `json:"other,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

// InstalledAccount is the account of a registered cluster.
type InstalledAccount struct {
	Cluster string `json:"cluster"`
	// Current: it has the permissions that this meshctl gives, is not in the namespace of the
	// management plane, and keeps the names below the suffixes of all VirtualMeshes. If not, it was registered by
	// another version, or before a VirtualMesh got its suffix.
	Current bool `json:"current"`
}

// Versions finds out what is installed in the management cluster. It writes nothing.
func Versions(ctx context.Context, o VersionsOptions) (*InstalledVersions, error) {
	orDefault(&o.Namespace, cluster.DefaultNamespace)
	s, err := newServer(managementSide, o.Context, o.Config, o.Timeout)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	out := &InstalledVersions{Kubernetes: s.version}
	if out.Server, err = s.installedServer(ctx, o.Namespace); err != nil {
		return nil, err
	}
	if out.Types, err = crdsOn(s).installedTypes(ctx); err != nil {
		return nil, err
	}
	m, err := s.inScope(ctx, o.Namespace)
	if err != nil {
		return nil, err
	}
	for _, kc := range m.KubernetesClusters { // the API server lists them ascending
		if kc.Status.Server != nil {
			out.Served = kc.Status.Server.Version
		}
		out.Clusters = append(out.Clusters, InstalledAccount{
			Cluster: kc.Name, Current: reflect.DeepEqual(kc.Status.PolicyRules, policyRules(remoteRules(virtualmesh.PoliciesCountIn(m, kc.Name)))) && reserves(kc.Annotations, suffixes(m)) &&
				(kc.Status.Namespace != o.Namespace || kc.Annotations[cluster.UIDAnnotation] != string(s.uid)),
		})
	}
	return out, nil
}

func (s *server) installedServer(ctx context.Context, namespace string) (*InstalledServer, error) {
	found, err := s.get(ctx, deployments, namespace, ServeName)
	if err != nil || found == nil || found.GetLabels()[nameLabel] != ServeName {
		return nil, err
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &d); err != nil {
		return nil, fmt.Errorf("Deployment %s/%s: decoding: %w", namespace, ServeName, err)
	}
	out := &InstalledServer{Version: d.Labels[versionLabel], Ready: d.Status.ReadyReplicas, Replicas: 1}
	if d.Spec.Replicas != nil {
		out.Replicas = *d.Spec.Replicas
	}
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == serveContainer {
			out.Image = c.Image
		}
	}
	return out, nil
}

func (s crdInstaller) installedTypes(ctx context.Context) (InstalledTypes, error) {
	var out InstalledTypes
	all, err := allCRDs()
	if err != nil {
		return out, err
	}
	outdated, err := s.outdatedCRDs(ctx, "")
	if err != nil {
		return out, err
	}
	for _, o := range outdated {
		found, err := s.get(ctx, crdResource, "", o.name)
		switch {
		case err != nil && !kube.IsAbsent(err):
			return out, err
		case found == nil:
			out.Missing = append(out.Missing, o.name)
		default:
			out.Other = append(out.Other, o.name)
		}
	}
	out.Current = len(all) - len(outdated)
	return out, nil
}

// Skew says what to do so that all that is installed is of this version; nothing if it is.
func (v *InstalledVersions) Skew(version string) []snapshot.Reason {
	var out []snapshot.Reason
	add := func(hint, format string, args ...any) {
		out = append(out, snapshot.Reason{Code: snapshot.VersionSkew, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch {
	case version == "":
	case v.Server != nil && v.Server.Version != version:
		add("run `meshctl upgrade` of the newer one", "meshctl serve is installed in version %s", cmp.Or(v.Server.Version, "unknown"))
	case v.Server == nil && v.Served != "" && v.Served != version:
		add("replace it, or use that version here", "meshctl serve runs in version %s", v.Served)
	}
	if n := len(v.Types.Missing) + len(v.Types.Other); n > 0 && v.Types.Current+len(v.Types.Other) > 0 {
		add("run `meshctl upgrade` of the newer version", "%s differ from those of this meshctl", snapshot.Count(n, "custom resource type"))
	}
	for _, c := range v.Clusters {
		if !c.Current {
			add("run `meshctl cluster register "+c.Cluster+"` again", "cluster %s was registered by another version, or before a VirtualMesh got its suffix", c.Cluster)
		}
	}
	return out
}
