package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ManyEntries is how many services of other meshes a proxy can hold before a check warns, and a wizard proposes to import less. It
// is the size of the mesh with which Istio publishes what its proxies need: 1,000 services
// (istio.io/latest/docs/ops/deployment/performance-and-scalability).
const ManyEntries = 1_000

// ModeSize is what federation adds to each proxy of the members of a VirtualMesh with one mode: that of the member whose proxies
// hold the most.
type ModeSize struct {
	Mode networkingv1.FederationMode `json:"mode"`
	// InForce: it is the mode of the VirtualMesh.
	InForce bool `json:"inForce,omitempty"`
	// Mesh is that member; zero if federation adds nothing to any.
	Mesh           snapshot.Ref `json:"mesh,omitzero"`
	ServiceEntries int          `json:"serviceEntries"`
	Endpoints      int          `json:"endpoints"`
	// EstimatedBytes is the size as JSON of the objects that are written for callers there. Proxies hold another form of it: it is
	// an estimate, to be compared with that of the other mode.
	EstimatedBytes int `json:"estimatedBytes"`
	// Written are the ServiceEntries in all members together.
	Written int `json:"serviceEntriesOfAllMembers"`
}

// Text is "12 services and 24 endpoints, about 9 KB".
func (m *ModeSize) Text() string {
	if m.ServiceEntries == 0 {
		return "nothing"
	}
	return size{m.ServiceEntries, m.Endpoints, m.EstimatedBytes}.text()
}

// FederationSizes compares the modes of federation of a VirtualMesh, that in force first; nil if it federates nothing. Translate
// translates the Input with the other mode; without it, only the mode in force is looked at.
func FederationSizes(x *Index, ref snapshot.Ref, translate func(*snapshot.Input) *snapshot.State) ([]ModeSize, error) {
	v := x.virtualMeshes[ref]
	if v == nil || v.NotCounted || v.VirtualMesh.Spec.Federation == nil {
		return nil, nil
	}
	f := v.VirtualMesh.Spec.Federation
	if len(f.Selectors) == 0 && f.Permissive == nil && f.Mode != networkingv1.FederationModeDeclared {
		return nil, nil
	}
	own := modeSize(x.state, ref)
	own.InForce = true
	if translate == nil {
		return []ModeSize{own}, nil
	}
	other := v.VirtualMesh.DeepCopy()
	other.Spec.Federation.Mode = networkingv1.FederationModeDeclared
	if own.Mode == networkingv1.FederationModeDeclared {
		other.Spec.Federation.Mode = networkingv1.FederationModeAll
		if len(f.Selectors) == 0 && f.Permissive == nil {
			other.Spec.Federation.Selectors = []networkingv1.FederationSelector{{}}
		}
	}
	input, err := x.state.Input.With("", other)
	if err != nil {
		return nil, fmt.Errorf("VirtualMesh %s/%s with mode %s: %w; report it, as its sizes cannot be compared", ref.Namespace, ref.Name, other.Spec.Federation.Mode, err)
	}
	return []ModeSize{own, modeSize(translate(input), ref)}, nil
}

// modeOfFederation is the mode of a VirtualMesh; ALL if it says none.
func modeOfFederation(v *snapshot.VirtualMeshPlan) networkingv1.FederationMode {
	if f := v.VirtualMesh.Spec.Federation; f != nil && f.Mode == networkingv1.FederationModeDeclared {
		return f.Mode
	}
	return networkingv1.FederationModeAll
}

func modeSize(state *snapshot.State, ref snapshot.Ref) ModeSize {
	i := slices.IndexFunc(state.Plan.VirtualMeshes, func(v *snapshot.VirtualMeshPlan) bool { return v.Ref == ref })
	if i < 0 {
		return ModeSize{}
	}
	v := state.Plan.VirtualMeshes[i]
	out := ModeSize{Mode: modeOfFederation(v)}
	if len(v.Loads) == 0 {
		return out
	}
	bytes := federatedBytes(state)
	for _, load := range v.Loads {
		out.Written += load.ServiceEntries
		if out.Mesh == (snapshot.Ref{}) || bytes[load.Mesh] > out.EstimatedBytes {
			out.Mesh, out.ServiceEntries, out.Endpoints, out.EstimatedBytes = load.Mesh, load.ServiceEntries, load.Endpoints, bytes[load.Mesh]
		}
	}
	return out
}

// federatedBytes is the size as JSON of what is written for callers of each mesh about services of others.
func federatedBytes(state *snapshot.State) map[snapshot.Ref]int {
	type place struct{ cluster, namespace string }
	at, sizes := map[place]int{}, map[any]int{} // many objects share a spec
	for p := range state.Output.Parts.All() {
		for _, o := range p.Objects {
			if o.Content.Annotations[snapshot.FederationAnnotation] == "" {
				continue
			}
			n, known := sizes[o.Content.Spec]
			if !known {
				if text, err := json.Marshal(o.Content.Spec); err == nil {
					n = len(text)
				}
				sizes[o.Content.Spec] = n
			}
			at[place{o.Ref.Cluster, o.Ref.Namespace}] += n
		}
	}
	out := map[snapshot.Ref]int{}
	for _, m := range state.Plan.Meshes {
		out[m.Ref] = at[place{m.Cluster, m.Namespace}]
	}
	return out
}

// bytesText is for people: 950 B, 12 KB, 3.4 MB.
func bytesText(n int) string {
	switch {
	case n < 1_000:
		return strconv.Itoa(n) + " B"
	case n < 1_000_000:
		return strconv.Itoa((n+500)/1_000) + " KB"
	}
	return strconv.FormatFloat(float64(n)/1_000_000, 'f', 1, 64) + " MB"
}

// modesText compares the modes in a sentence without a period.
func modesText(modes []ModeSize) string {
	text := ""
	for i := range modes {
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%s with mode %s", modes[i].Text(), modes[i].Mode)
		if modes[i].InForce {
			text += ", which it has"
		}
	}
	return text
}

// modesSection is the table of a VirtualMesh.
func modesSection(modes []ModeSize) Section {
	s := Section{
		Title:  "What each proxy holds of other meshes",
		Text:   "At most, in the mesh that is named. Bytes are an estimate: the JSON of the objects that meshctl writes.",
		Header: []string{"MODE", "IN FORCE", "SERVICES", "ENDPOINTS", "ABOUT", "MESH", "SERVICEENTRIES OF ALL MESHES"},
	}
	for _, m := range modes {
		s.Rows = append(s.Rows, []string{
			string(m.Mode), map[bool]string{true: "yes", false: "no"}[m.InForce], strconv.Itoa(m.ServiceEntries), strconv.Itoa(m.Endpoints),
			bytesText(m.EstimatedBytes), m.Mesh.Name, strconv.Itoa(m.Written),
		})
		s.Refs = append(s.Refs, m.Mesh)
	}
	return s
}
