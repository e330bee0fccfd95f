package policy

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// SelectionIssues says which references name nothing, or that nothing is selected at all.
func SelectionIssues(policy snapshot.Ref, field string, selected []int, missing []commonv1.ClusterObjectRef) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, m := range missing {
		issues = append(issues, snapshot.Errorf(snapshot.DestinationNotFound,
			"correct the reference; `meshctl describe destination` lists the services there are",
			"%s: service %s was not discovered", field, ServiceName(m)).On(policy, snapshot.Ref{}))
	}
	if len(selected)+len(missing) == 0 {
		issues = append(issues, snapshot.Warnf(snapshot.SelectsNothing,
			"correct "+field+"; `meshctl describe destination` lists the services there are",
			"%s matches no destination", field).On(policy, snapshot.Ref{}))
	}
	return issues
}
