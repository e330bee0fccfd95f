package snapshot

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
)

// Logging is what is known of proxies that send their access log.
type Logging struct {
	// Workloads are those of which a proxy sends its log, ascending.
	Workloads []Ref
}

// AccessLogPlan is the verdict on one AccessLogRecord.
type AccessLogPlan struct {
	Ref    Ref
	Record *observabilityv1.AccessLogRecord
	// Workloads are those that it selects, ascending by Ref.
	Workloads []Ref
	// Logging is how many of them send their log, and Missing why the others do not; it is not known of any without an Input.Logging.
	Logging int
	Missing map[Ref]string
	State   commonv1.ApprovalState
	Issues  []Issue
}
