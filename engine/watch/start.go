package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// MissingCRDsError says that the management cluster lacks CRDs of meshctl.
type MissingCRDsError struct {
	// Host is the management cluster's API server.
	Host string
	// Names are those of the missing CRDs, ascending.
	Names []string
}

func (e *MissingCRDsError) Error() string {
	if e.NoPlane() {
		return fmt.Sprintf("cluster %s is no management cluster: the custom resource types of meshctl are not installed there; "+
			"choose the context of the management cluster with --context, or make this one with `meshctl install` or `meshctl cluster register`", e.Host)
	}
	return fmt.Sprintf("management cluster %s: %d custom resource types of meshctl are not installed: %s; run `meshctl upgrade`, or `meshctl cluster register` again",
		e.Host, len(e.Names), strings.Join(e.Names, ", "))
}

// NoPlane reports that the cluster is no management cluster at all: every one has the type of
// registrations.
func (e *MissingCRDsError) NoPlane() bool {
	return slices.Contains(e.Names, snapshot.KubernetesCluster.GroupVersionResource().GroupResource().String())
}

// CheckCRDs returns a MissingCRDsError if the management cluster answers and does
// not serve all kinds of meshctl. If it does not answer, that is no error here: a
// Source waits for it.
func CheckCRDs(ctx context.Context, config *rest.Config) error {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	missing, err := MissingCRDs(bounded, config)
	if err == nil && len(missing) > 0 {
		return &MissingCRDsError{Host: config.Host, Names: missing}
	}
	return nil
}

// MissingCRDs are the names of the CRDs of meshctl that a cluster does not serve, ascending; none if
// it does not say.
func MissingCRDs(ctx context.Context, config *rest.Config) ([]string, error) {
	client, err := newClient(config, scheme.New(), runtime.ContentTypeJSON, nil)
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	defer client.CloseIdle()
	return missingCRDs(ctx, client)
}

// Waiting says what the first signal of Changed waits for; empty once it came.
func (s *Source) Waiting() string {
	if s.ready.Load() {
		return ""
	}
	if !s.management.published.Load() {
		return cmp.Or(s.ManagementReason(), "the management cluster has not been read")
	}
	if names := s.unsettled(); len(names) > 0 {
		return "clusters have not been read: " + strings.Join(names, ", ")
	}
	return "the registered clusters are not known"
}

// NextStep is what can be done where what Waiting says does not end.
func (s *Source) NextStep() string {
	if _, err := s.management.unreadable(); err != nil {
		return kube.NextStep(err)
	}
	return "`meshctl cluster list` says why, and what to do"
}

// ManagementReason says why the management cluster cannot be read at present;
// empty if it can. What was read before stays in the Input.
func (s *Source) ManagementReason() string {
	kind, reason := s.unreadable()
	if reason == "" {
		return ""
	}
	return "the management cluster's " + kind.Info().Resource + " cannot be read: " + reason
}

// unreadable returns a kind that cannot be read on the management cluster, and why; nothing
// if all can.
func (s *Source) unreadable() (kind snapshot.Kind, reason string) {
	kind, err := s.management.unreadable()
	if err == nil {
		return kind, ""
	}
	return kind, kube.Reason(s.options.Management.Host, err)
}

// awaitCRDs waits until the management cluster answers and returns an error if
// it does not serve all kinds of meshctl.
func (s *Source) awaitCRDs(ctx context.Context) error {
	logged := ""
	for {
		missing, err := missingCRDs(ctx, s.management.client)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // being stopped is no failure
		case err == nil && len(missing) > 0:
			return &MissingCRDsError{Host: s.options.Management.Host, Names: missing}
		case err == nil:
			return nil
		}
		if reason := kube.Reason(s.options.Management.Host, err); reason != logged {
			logged = reason
			s.options.Log.Warn("the management cluster cannot be read; trying again", "reason", reason)
		}
		s.management.client.CloseIdle()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.options.ProbeInterval / 5):
		}
	}
}

// missingCRDs lists the CRDs of kinds that are watched on the management cluster
// and that it does not serve. None are missing if the server forbids the question.
func missingCRDs(ctx context.Context, client *kube.Client) ([]string, error) {
	served := map[string]metav1.APIResourceList{}
	var missing []string
	for _, k := range managementKinds() {
		info := k.Info()
		gv := info.GroupVersion().String()
		if _, asked := served[gv]; !asked {
			bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
			body, err := client.Read(bounded, "/apis/"+gv)
			cancel()
			switch {
			case apierrors.IsForbidden(err):
				return nil, nil
			case err != nil && !apierrors.IsNotFound(err):
				return nil, err
			}
			var list metav1.APIResourceList
			if err == nil {
				if err := json.Unmarshal(body, &list); err != nil {
					return nil, fmt.Errorf("resources of %s: %w", gv, err)
				}
			}
			served[gv] = list
		}
		if !slices.ContainsFunc(served[gv].APIResources, func(r metav1.APIResource) bool { return r.Name == info.Resource }) {
			missing = append(missing, info.Resource+"."+info.Group)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// managementKinds are the kinds of which snapshot.Management has a list.
func managementKinds() []snapshot.Kind {
	return snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write)
}

// identify reads which cluster the management cluster is, so that it is known if it is registered as well. Who may not read that does
// not know it.
func (s *Source) identify(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		bounded, done := context.WithTimeout(ctx, s.options.ProbeTimeout)
		body, err := s.management.client.Read(bounded, "/api/v1/namespaces/"+metav1.NamespaceSystem)
		done()
		var system metav1.PartialObjectMetadata
		if err == nil {
			err = json.Unmarshal(body, &system)
		}
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.input.management.ClusterUID, s.input.view = string(system.UID), nil
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(kube.Backoff(s.options.ProbeInterval/100, s.options.ProbeInterval, failures)):
		}
	}
}

// awaitManagement waits until the management cluster has been read.
func (s *Source) awaitManagement(ctx context.Context) {
	logged := ""
	for !s.management.isFilled() {
		logged = s.logNewReason(logged)
		select {
		case <-ctx.Done():
			return
		case <-s.management.progress:
		case <-s.management.failed:
		}
	}
	s.management.published.Store(true)
}

// logNewReason logs why the management cluster cannot be read, or that it can be
// read again, if that differs from what was logged last: once for all kinds of which the
// reason is the same. It returns the reason.
func (s *Source) logNewReason(logged string) string {
	_, reason := s.unreadable()
	switch {
	case reason == logged:
	case reason == "":
		s.options.Log.Info("the management cluster can be read again")
	default:
		s.options.Log.Warn("the management cluster cannot be read; trying again", "reason", s.ManagementReason())
	}
	return reason
}

// logUnreadable logs when the management cluster becomes unreadable or readable,
// until ctx ends.
func (s *Source) logUnreadable(ctx context.Context) {
	ticker := time.NewTicker(s.options.ProbeInterval)
	defer ticker.Stop()
	for logged := ""; ; logged = s.logNewReason(logged) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// awaitClusters waits until all registered clusters have been read or have a
// reason not to be, within the grace period.
func (s *Source) awaitClusters(ctx context.Context) {
	if s.options.RegistrySynced != nil {
		select {
		case <-ctx.Done():
			return
		case <-s.options.RegistrySynced:
		}
	}
	grace := time.NewTimer(s.options.Grace)
	defer grace.Stop()
	for {
		waiting := s.unsettled()
		if len(waiting) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.progress:
		case <-grace.C:
			s.options.Log.Warn("some clusters have not been read yet; starting without them, and nothing is written there", "clusters", waiting)
			return
		}
	}
}

// unsettled names the registered clusters that have neither been read nor have a
// reason not to be, ascending.
func (s *Source) unsettled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, c := range s.clusters {
		if !c.isSettled() {
			names = append(names, name)
		}
	}
	for _, registered := range s.managementView().KubernetesClusters {
		if s.clusters[registered.Name] == nil {
			names = append(names, registered.Name)
		}
	}
	slices.Sort(names)
	return names
}
