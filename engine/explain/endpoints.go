package explain

import (
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Endpoint is a pod behind a Destination that is ready.
type Endpoint struct {
	Address string `json:"address"`
	// OtherAddresses are those of the same pod in other IP families.
	OtherAddresses []string          `json:"otherAddresses,omitempty"`
	Zone           string            `json:"zone,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	// NoProxy: it runs no proxy of the mesh.
	NoProxy bool `json:"noProxy,omitempty"`
	// Ambient: it is in ambient mode.
	Ambient bool `json:"ambient,omitempty"`
	// Machine: it is no pod, but a WorkloadEntry.
	Machine bool `json:"machine,omitempty"`
}

// endpointsOf lists the ready endpoints of a Destination that have all of some labels.
func endpointsOf(d *snapshot.DestinationPlan, with map[string]string) []discoveryv1.Endpoint {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return nil
	}
	var out []discoveryv1.Endpoint
	for i := range k.EndpointSubsets {
		for _, e := range k.EndpointSubsets[i].Endpoints {
			if hasLabels(e.Labels, with) {
				out = append(out, e)
			}
		}
	}
	return out
}

func hasLabels(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// endpoints are those of a Destination as values.
func (x describer) endpoints(d *snapshot.DestinationPlan) []Endpoint {
	out := []Endpoint{}
	k := d.Destination.Spec.KubeService
	if k == nil {
		return out
	}
	for i := range k.EndpointSubsets {
		part := &k.EndpointSubsets[i]
		for _, e := range part.Endpoints {
			zone := ""
			if l := e.SubLocality; l != nil {
				zone = strings.Trim(l.Zone+"/"+l.SubZone, "/")
			}
			out = append(out, Endpoint{Address: e.IpAddress, OtherAddresses: e.OtherAddresses, Zone: zone, Labels: e.Labels, NoProxy: part.NoProxy && !part.Machines && !part.Ambient, Ambient: part.Ambient, Machine: part.Machines})
		}
	}
	return out
}

// behind counts the ready endpoints that requests to a target end at; nothing
// is known of targets that are no Kubernetes service.
func (x describer) behind(t snapshot.Target) *int {
	d := x.destinations[t.Destination]
	if d == nil || d.Destination.Spec.KubeService == nil {
		return nil
	}
	with, found := subsetLabels(x.unwritten.viewsOf(d), t.Subset)
	if !found {
		return nil
	}
	n := len(endpointsOf(d, with))
	return &n
}

// subsetLabels are those of the pods of a subset, which the views of the Destination name; nil for all pods.
func subsetLabels(views []*snapshot.View, name string) (with map[string]string, found bool) {
	if name == "" {
		return nil, true
	}
	for _, v := range views {
		for _, s := range v.Subsets {
			if s.Name == name {
				return s.Labels, true
			}
		}
	}
	return nil, false
}

func endpointsSection(list []Endpoint) Section {
	s := Section{Title: "Endpoints that are ready"}
	if len(list) == 0 {
		s.Text = "None is known."
		return s
	}
	s.Header = []string{"ADDRESS", "ZONE", "LABELS"}
	unlike := slices.ContainsFunc(list, func(e Endpoint) bool { return e.NoProxy || e.Machine || e.Ambient })
	if unlike {
		s.Header = append(s.Header, "PROXY")
	}
	for _, e := range list {
		row := []string{strings.Join(append([]string{e.Address}, e.OtherAddresses...), ", "), e.Zone, labels(e.Labels)}
		switch {
		case e.Machine:
			row = append(row, "WorkloadEntry")
		case e.Ambient:
			row = append(row, "ztunnel")
		case e.NoProxy:
			row = append(row, "none")
		case unlike:
			row = append(row, "yes")
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// endpoints is the cell of a route table.
func (t Target) endpoints() string {
	if t.Endpoints == nil {
		return ""
	}
	return strconv.Itoa(*t.Endpoints)
}
