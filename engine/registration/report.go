package registration

// Action is what happened to an object.
type Action string

const (
	// Created: it was not there.
	Created Action = "created"
	// Updated: it was there and differed.
	Updated Action = "updated"
	// Unchanged: it was there and as it should be; nothing was written.
	Unchanged Action = "unchanged"
	// Deleted: it was deleted.
	Deleted Action = "deleted"
	// Left: it was not removed; the report's Leftovers say how to.
	Left Action = "left"
)

// Change is what happened to one object, or to Count objects of a kind.
type Change struct {
	Action Action `json:"action"`
	// Server is "management" or "remote".
	Server    string `json:"server"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Count is how many objects; 1 if Name is set.
	Count int `json:"count"`
}

// Report is what registering or deregistering did, in order.
type Report struct {
	Cluster string   `json:"cluster"`
	Changes []Change `json:"changes"`
	// Notes are sentences that the user should read.
	Notes []string `json:"notes,omitempty"`
	// Serve is whether a running serve reaches the registered cluster; empty if that was not
	// asked.
	Serve ServeStatus `json:"serve,omitempty"`
	// Revoked: credentials that were issued before are refused now.
	Revoked bool `json:"revoked,omitempty"`
	// Leftovers are commands that finish what could not be done.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Unchanged reports whether nothing was written.
func (r *Report) Unchanged() bool {
	for _, change := range r.Changes {
		if change.Action != Unchanged {
			return false
		}
	}
	return true
}

func (r *Report) add(changes ...Change) { r.Changes = append(r.Changes, changes...) }

func (r *Report) note(sentence string) {
	if sentence != "" {
		r.Notes = append(r.Notes, sentence)
	}
}
