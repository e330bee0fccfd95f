package snapshot

// Plane is a management plane, as the labels of the objects that it writes name it.
type Plane struct {
	// Namespace is the value of the owner labels: where the management plane lives.
	Namespace string
	// ID is the value of PlaneLabel. Management planes of other clusters may live in a
	// namespace of the same name, and call a cluster by the same name. If it is empty,
	// as for objects that are read from files, the namespace alone tells.
	ID string
}

// Owns reports whether translated objects with such labels are the management plane's. One
// without an ID is from a version that wrote none: who has its namespace takes it over.
func (p Plane) Owns(labels map[string]string) bool {
	id, marked := labels[PlaneLabel]
	return labels[NetworkingOwnerLabel] == p.Namespace && (p.ID == "" || !marked || id == p.ID)
}

// Generated reports whether an object of a cluster with such labels is one that the
// management plane wrote there. Others may carry any of the labels: only one that has all
// of them is deleted unless it is wanted, so that nobody hides an object by labelling it.
func (p Plane) Generated(labels map[string]string, cluster string) bool {
	at, named := labels[ClusterLabel]
	return p.Owns(labels) && named && at == cluster
}

// Plane returns the management plane that holds it.
func (m *Management) Plane() Plane { return Plane{Namespace: m.Namespace, ID: m.PlaneID} }
