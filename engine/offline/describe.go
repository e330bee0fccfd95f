package offline

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// clusterDocument describes a cluster's folder.
type clusterDocument struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		overlay
		Domain string `json:"domain"`
		// Sync is a pointer because its zero value has a meaning.
		Sync   *snapshot.Sync `json:"sync"`
		Cause  snapshot.Code  `json:"cause"`
		Reason string         `json:"reason"`
		// Reading is left out where it is false.
		Reading bool `json:"reading"`
		// WebhooksUnknown is that of the Cluster. If it is left out, it is whether there are none.
		WebhooksUnknown *bool    `json:"webhooksUnknown"`
		Unread          []unread `json:"unread"`
		// Denied is that of the Cluster.
		Denied []snapshot.Kind `json:"denied"`
	} `json:"spec"`
}

// unread is a snapshot.Unread.
type unread struct {
	Ref    snapshot.Ref `json:"ref"`
	Denied bool         `json:"denied"`
	Reason string       `json:"reason"`
}

func describeCluster(doc document, c *snapshot.Cluster, unknown **bool) error {
	var d clusterDocument
	if err := decode(doc, &d, true); err != nil {
		return err
	}
	c.Domain, c.Cause, c.Reason, c.Reading, c.Denied = d.Spec.Domain, d.Spec.Cause, d.Spec.Reason, d.Spec.Reading, d.Spec.Denied
	if d.Spec.Sync != nil {
		c.Sync = *d.Spec.Sync
	}
	*unknown = d.Spec.WebhooksUnknown
	for _, u := range d.Spec.Unread {
		c.Unread = append(c.Unread, snapshot.Unread(u))
	}
	return nil
}

// managementDocument describes the management plane's folder.
type managementDocument struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		overlay
		Namespace string    `json:"namespace"`
		Failures  []failure `json:"failures"`
		// RefuseIntersecting is that of the Input. If it is left out, it is what the
		// statuses of the KubernetesClusters say of their server.
		RefuseIntersecting *bool `json:"refuseIntersecting"`
		// The others are those of the Input and the Management.
		PlaneID    string   `json:"planeID"`
		ClusterUID string   `json:"clusterUID"`
		Version    string   `json:"version"`
		Gone       []string `json:"gone"`
		Roots      []roots  `json:"roots"`
		// Logging are the Workloads of Input.Logging, which is nil if they are left out.
		Logging *[]snapshot.Ref `json:"logging"`
		// Recorded and Served are those of a Snapshot.
		Recorded time.Time `json:"recorded"`
		Served   bool      `json:"served"`
	} `json:"spec"`
}

// roots is a snapshot.VirtualMeshRoots, and root a snapshot.Root: certificates, without keys.
type (
	roots struct {
		VirtualMesh snapshot.Ref `json:"virtualMesh"`
		Roots       []root       `json:"roots"`
		Signs       string       `json:"signs"`
		Problem     string       `json:"problem"`
		// Pins are those that are recorded.
		Pins []snapshot.TrustPin `json:"pins,omitempty"`
	}
	root struct {
		Fingerprint string       `json:"fingerprint"`
		PEM         string       `json:"pem"`
		NotAfter    time.Time    `json:"notAfter"`
		Gateways    bool         `json:"gateways"`
		Secret      snapshot.Ref `json:"secret"`
	}
)

// failure is a snapshot.Failure.
type failure struct {
	Ref snapshot.Ref `json:"ref"`
	// Code is WriteFailed if omitted.
	Code        snapshot.Code  `json:"code"`
	Message     string         `json:"message"`
	Hint        string         `json:"hint,omitempty"`
	ReleaseCode string         `json:"releaseCode,omitempty"`
	Parents     []snapshot.Ref `json:"parents"`
}

func describeManagement(doc document, input *snapshot.Input, f *folder) error {
	var d managementDocument
	if err := decode(doc, &d, true); err != nil {
		return err
	}
	if d.Spec.Namespace != "" {
		input.Management.Namespace = d.Spec.Namespace
	}
	f.refuse, f.recorded, f.served = d.Spec.RefuseIntersecting, d.Spec.Recorded, d.Spec.Served
	input.Management.PlaneID, input.Management.ClusterUID, input.Version, input.Gone = d.Spec.PlaneID, d.Spec.ClusterUID, d.Spec.Version, d.Spec.Gone
	for _, r := range d.Spec.Roots {
		of := &snapshot.VirtualMeshRoots{VirtualMesh: r.VirtualMesh, Signs: r.Signs, Problem: r.Problem, Pins: r.Pins}
		for _, each := range r.Roots {
			of.Roots = append(of.Roots, (*snapshot.Root)(&each))
		}
		input.Roots = append(input.Roots, of)
	}
	if d.Spec.Logging != nil {
		input.Logging = &snapshot.Logging{Workloads: *d.Spec.Logging}
	}
	for _, failed := range d.Spec.Failures {
		if failed.Ref.Kind == snapshot.NoKind {
			return doc.at.errorf([]string{"spec", "failures"}, "a failure names no kind; add ref.kind")
		}
		if failed.Code == "" {
			failed.Code = snapshot.WriteFailed
		}
		input.Failures = append(input.Failures, snapshot.Failure{
			Ref: failed.Ref, Parents: failed.Parents,
			Reason: snapshot.Reason{Code: failed.Code, What: failed.Message, Hint: failed.Hint, ReleaseCode: failed.ReleaseCode},
		})
	}
	return nil
}
