// Package traffic is what requests do, as proxies count it: from the text of a proxy's statistics to the edges between workloads and
// destinations, and their rates. It reads no clock and no network; package telemetry does, for it.
//
//	values.go    numbers of one edge, and how they add up
//	text.go      Prometheus' text format, from somebody who is not trusted
//	reading.go   what one proxy said at one time
//	pushed.go    what a proxy sends by itself
//	book.go      readings of all proxies, as what came since the last ones
//	names.go     hosts as Destinations and VirtualDestinations
//	pods.go      the pods to read, and why others are not
//	ring.go      the last 15 minutes, and all since the start, by edge
//	report.go    one window of it, for people and programs
//	rows.go      a report by destination, workload and edge
//	series.go    numbers at several times, by workload and pair of workloads
package traffic
