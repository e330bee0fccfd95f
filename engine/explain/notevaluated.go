package explain

import "strings"

// notEvaluated are what applies to the requests and is not evaluated, in sentences.
func (q *query) notEvaluated(out *Why) (list []string) {
	if len(out.Outcomes) == 0 {
		return nil
	}
	if set := q.mesh.DefaultSettings; len(set) > 0 {
		list = append(list, "defaultTrafficPolicy in the meshConfig of mesh "+q.mesh.Ref.Name+" sets "+strings.Join(set, " and ")+
			" for services for which nothing else does: requests above its limits are refused, and pods that fail get none for a while")
	}
	return list
}
