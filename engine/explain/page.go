package explain

import "github.com/meshctl/meshctl/engine/snapshot"

// Value is an answer. It marshals to JSON; Page and Summary are the same as text.
type Value interface {
	// Page is the whole answer.
	Page() Page
	// Summary is one row of a list; SummaryHeader names its cells.
	Summary() []string
}

// Page is an answer in sections, for painters that know nothing of meshes.
type Page struct {
	// Title names the object.
	Title    string
	Sections []Section
	// Issues are what is wrong or worth knowing, worst first.
	Issues []snapshot.Issue
}

// Section is a table with a title.
type Section struct {
	Title string
	// Text is a sentence before the table; may be empty.
	Text string
	// Header names the columns; nil for rows of name and value.
	Header []string
	// Rows have a cell for each column; a single space means the same as above.
	Rows [][]string
	// Refs are what the rows are about, for painters that can go there: none,
	// or one for each row, of which some may be zero.
	Refs []snapshot.Ref
}

// above is a cell that repeats the one above it; painters show it as blank,
// where they show a cell without a value as a dash.
const above = " "

// facts is a section of names and values; values that are empty are left out.
func facts(title string, pairs ...[2]string) Section {
	s := Section{Title: title}
	for _, pair := range pairs {
		if pair[1] != "" {
			s.Rows = append(s.Rows, []string{pair[0], pair[1]})
		}
	}
	return s
}

// SummaryHeader names the cells of the summaries of a kind.
func SummaryHeader(kind snapshot.Kind) []string {
	switch kind {
	case snapshot.Mesh:
		return []string{"NAME", "TYPE", "VERSION", "CLUSTER", "TRUST DOMAIN", "VIRTUAL MESH", "GATEWAYS", "ISSUES"}
	case snapshot.Workload:
		return []string{"NAME", "CLUSTER", "NAMESPACE", "CONTROLLER", "SERVICE ACCOUNT", "MESH", "ISSUES"}
	case snapshot.Destination:
		return []string{"NAME", "CLUSTER", "NAMESPACE", "SERVICE", "FEDERATED AS", "TRAFFIC", "ACCESS", "ISSUES"}
	case snapshot.KubernetesCluster:
		return []string{"NAME", "HEALTH", "MESHES", "WORKLOADS", "DESTINATIONS", "OBJECTS", "ISSUES"}
	case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		return []string{"NAME", "NAMESPACE", "STATE", "TARGETS", "REFUSED", "CREATED", "ISSUES"}
	case snapshot.VirtualMesh:
		return []string{"NAME", "NAMESPACE", "STATE", "MESHES", "FEDERATED", "GLOBAL ACCESS", "ISSUES"}
	case snapshot.VirtualDestination:
		return []string{"NAME", "NAMESPACE", "STATE", "HOST", "PORT", "PROTOCOL", "BEHIND IT", "SEEN BY", "ISSUES"}
	case snapshot.ServiceDependency:
		return []string{"NAME", "NAMESPACE", "STATE", "WORKLOADS", "HOSTS", "ISSUES"}
	}
	return nil
}
