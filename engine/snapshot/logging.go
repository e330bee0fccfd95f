package snapshot

// Logging is what is known of proxies that send their access log.
type Logging struct {
	// Workloads are those of which a proxy sends its log, ascending.
	Workloads []Ref
}
