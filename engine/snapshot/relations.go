package snapshot

// Relations say what of an object others depend on, and what it depends on itself. Its renderer states them; sinks compare names, and
// read nothing out of them. What needs a name is written after what provides it, and what provides a name is deleted after what
// needs it: across all clusters, and with a pause in which proxies learn of it.
type Relations struct {
	// Needs and Provides are ascending, each name once.
	Needs    []Name `json:"needs,omitempty"`
	Provides []Name `json:"provides,omitempty"`
	// Protects: requests that no other object allows are denied because of it. It is not withdrawn without an edit.
	Protects bool `json:"protects,omitempty"`
}

// Name is something that proxies know, such as a host, a subset of it, or what a gateway passes on.
type Name struct {
	Name string `json:"name"`
	// Local names mean something else in each cluster.
	Local bool `json:"local,omitempty"`
	// Home is set where a name is provided in the cluster to which requests for it go: what needs it in other clusters waits also
	// if that cluster does not answer.
	Home bool `json:"home,omitempty"`
	// Together: it is enough that what provides the name is written before what needs it. Proxies use neither of the two
	// without the other.
	Together bool `json:"together,omitempty"`
}
