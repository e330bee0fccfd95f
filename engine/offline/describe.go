package offline

import (
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
		Reason string         `json:"reason"`
	} `json:"spec"`
}

func describeCluster(doc document, c *snapshot.Cluster) error {
	var d clusterDocument
	if err := decode(doc, &d, true); err != nil {
		return err
	}
	c.Domain, c.Reason = d.Spec.Domain, d.Spec.Reason
	if d.Spec.Sync != nil {
		c.Sync = *d.Spec.Sync
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
	} `json:"spec"`
}

// failure is a snapshot.Failure.
type failure struct {
	Ref snapshot.Ref `json:"ref"`
	// Code is WriteFailed if omitted.
	Code    snapshot.Code  `json:"code"`
	Message string         `json:"message"`
	Parents []snapshot.Ref `json:"parents"`
}

func describeManagement(doc document, input *snapshot.Input, refuse **bool) error {
	var d managementDocument
	if err := decode(doc, &d, true); err != nil {
		return err
	}
	if d.Spec.Namespace != "" {
		input.Management.Namespace = d.Spec.Namespace
	}
	*refuse = d.Spec.RefuseIntersecting
	for _, f := range d.Spec.Failures {
		if f.Ref.Kind == snapshot.NoKind {
			return doc.at.errorf([]string{"spec", "failures"}, "a failure names no kind; add ref.kind")
		}
		if f.Code == "" {
			f.Code = snapshot.WriteFailed
		}
		input.Failures = append(input.Failures, snapshot.Failure(f))
	}
	return nil
}
