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

// MissingCRDsError says that the management cluster does not know our kinds.
type MissingCRDsError struct {
	// Host is the management cluster's API server.
	Host string
	// Names are the missing CRDs', ascending.
	Names []string
}

func (e *MissingCRDsError) Error() string {
	return fmt.Sprintf("management cluster %s: %d CRDs are not installed (%s); `meshctl cluster register` installs them with the first cluster",
		e.Host, len(e.Names), strings.Join(e.Names, ", "))
}

// CheckCRDs returns a MissingCRDsError if the management cluster answers and
// does not serve all our kinds. That it does not answer is no error here: a
// Source waits for it.
func CheckCRDs(ctx context.Context, config *rest.Config) error {
	c, err := newClient(config, scheme.New(), runtime.ContentTypeJSON)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	defer c.CloseIdle()
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	missing, err := missingCRDs(bounded, c)
	if err == nil && len(missing) > 0 {
		return &MissingCRDsError{Host: config.Host, Names: missing}
	}
	return nil
}

// Waiting says for what the first signal of Changed waits; empty if it came.
func (s *Source) Waiting() string {
	if s.open.Load() {
		return ""
	}
	if !s.management.published.Load() {
		return cmp.Or(s.Trouble(), "the management cluster has not been read")
	}
	if names := s.unsettled(); len(names) > 0 {
		return "clusters have not been read: " + strings.Join(names, ", ")
	}
	return "the registered clusters are not known"
}

// Trouble says why the management cluster cannot be read at present; empty if
// it can. What was read before stays in the Input.
func (s *Source) Trouble() string {
	kind, err := s.management.trouble()
	if err != nil {
		return "the management cluster's " + kind.Info().Resource + " cannot be read: " + kube.Reason(s.options.Management.Host, err)
	}
	return ""
}

// awaitCRDs waits until the management cluster answers and returns an error if
// it does not serve all our kinds.
func (s *Source) awaitCRDs(ctx context.Context) error {
	told := ""
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
		if why := kube.Reason(s.options.Management.Host, err); why != told {
			told = why
			s.options.Log.Warn("the management cluster cannot be read; trying again", "reason", why)
		}
		s.management.client.CloseIdle()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.options.Probe / 5):
		}
	}
}

// missingCRDs lists the CRDs of kinds that are followed on the management
// cluster and that it does not serve. A server that does not let us ask is
// taken to have them.
func missingCRDs(ctx context.Context, c *kube.Client) ([]string, error) {
	served := map[string]metav1.APIResourceList{}
	var missing []string
	for _, k := range managementKinds() {
		info := k.Info()
		gv := info.GroupVersion().String()
		if _, asked := served[gv]; !asked {
			bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
			body, err := c.Read(bounded, "/apis/"+gv)
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
					return nil, fmt.Errorf("what is served of %s: %w", gv, err)
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

// awaitManagement waits until the management cluster has been read.
func (s *Source) awaitManagement(ctx context.Context) {
	told := ""
	for !s.management.isFilled() {
		told = s.tellTrouble(told)
		select {
		case <-ctx.Done():
			return
		case <-s.management.progress:
		case <-s.management.failed:
		}
	}
	s.management.published.Store(true)
}

// tellTrouble logs why the management cluster cannot be read, or that it can
// again, unless that was told already; it returns what was told last.
func (s *Source) tellTrouble(told string) string {
	now := ""
	kind, err := s.management.trouble()
	if err != nil {
		now = kind.Info().Resource + " cannot be read: " + kube.Reason(s.options.Management.Host, err)
	}
	switch {
	case now == told:
	case now == "":
		s.options.Log.Info("the management cluster can be read again")
	default:
		s.options.Log.Warn("the management cluster cannot be read; trying again", "reason", now)
	}
	return now
}

// attend tells of trouble with the management cluster until ctx ends.
func (s *Source) attend(ctx context.Context) {
	ticker := time.NewTicker(s.options.Probe)
	defer ticker.Stop()
	for told := ""; ; told = s.tellTrouble(told) {
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
	if s.options.Told != nil {
		select {
		case <-ctx.Done():
			return
		case <-s.options.Told:
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
		case <-s.settling:
		case <-grace.C:
			s.options.Log.Warn("going on without the clusters that have not been read yet; nothing is written there", "clusters", waiting)
			return
		}
	}
}

// unsettled names the registered clusters of which nothing is known yet, ascending.
func (s *Source) unsettled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, m := range s.members {
		if !m.isSettled() {
			names = append(names, name)
		}
	}
	for _, registered := range s.managementView().KubernetesClusters {
		if s.members[registered.Name] == nil {
			names = append(names, registered.Name)
		}
	}
	slices.Sort(names)
	return names
}
