package explain

// Tables lists the objects of an Index.
type Tables struct {
	*Index
	// facts are those about clusters, by name; nil if nothing is known but their objects.
	facts map[string]ClusterFacts
}

// Tables lists the objects; facts about clusters, by name, may be nil.
func (x *Index) Tables(facts map[string]ClusterFacts) Tables { return Tables{x, facts} }
