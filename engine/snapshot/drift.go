package snapshot

import "time"

// DriftState is how an object in a cluster differs from what is wanted.
type DriftState string

const (
	// DriftMissing: it is not there.
	DriftMissing DriftState = "missing"
	// DriftChanged: it says something else.
	DriftChanged DriftState = "changed"
	// DriftLeftover: it is there, and is not wanted any more.
	DriftLeftover DriftState = "leftover"
	// DriftForeign: another one is there under its name, which is not ours to change.
	DriftForeign DriftState = "foreign"
)

// Drift is an object that is not in its cluster as an Output has it.
type Drift struct {
	Ref   Ref        `json:"ref"`
	State DriftState `json:"state"`
	// Fields are what differs, ascending by path, if it is DriftChanged and was read.
	Fields []DriftField `json:"fields,omitempty"`
	// By is the field manager that changed it last (Kubernetes: Server-Side Apply), and At
	// when; empty if that is not known.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at,omitzero"`
}

// DriftField is a field with two values.
type DriftField struct {
	// Path is as for JSON: spec.http[0].route[].weight. Of a list of objects of which one
	// field differs, [] stands for all elements, and the values are joined by /.
	Path string `json:"path"`
	// InForce is what the cluster has; empty if nothing.
	InForce string `json:"inForce"`
	// Wanted is what follows; empty if nothing.
	Wanted string `json:"wanted"`
}

// Observed is what exists of an Output.
type Observed struct {
	// Drifts are all differences, ascending by Ref.
	Drifts []Drift `json:"drifts"`
	// Unread are the clusters of which nothing is known, by name, with the reason.
	Unread map[string]string `json:"unread,omitempty"`
	// Created is when the objects of ours that exist were created, of the kinds of which meshes use the older of two:
	// ServiceEntries and Sidecars.
	Created map[Ref]time.Time `json:"-"`
}

// Serving is what is known of the serve that runs, by its Lease.
type Serving struct {
	// Known is false if the Lease may not be read; Reason says why.
	Known  bool   `json:"known"`
	Reason string `json:"reason,omitempty"`
	// Holder is who leads; empty if nobody does.
	Holder string `json:"holder,omitempty"`
	// Since is when the holder began to lead, or when the last one ended; zero if there was
	// none.
	Since time.Time `json:"since,omitzero"`
	// Until is when the holder's term ends, unless it is renewed.
	Until time.Time `json:"until,omitzero"`
}

// At reports whether a serve leads, and since when it does or does not; zero if none ever
// did.
func (s *Serving) At(now time.Time) (leads bool, since time.Time) {
	switch {
	case s.Holder == "":
		return false, s.Since
	case now.After(s.Until):
		return false, s.Until
	}
	return true, s.Since
}
