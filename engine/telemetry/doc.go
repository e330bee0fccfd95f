// Package telemetry reads what proxies count, and keeps the last 15 minutes of it in memory: a Telemetry belongs to a process, and counts
// while that leads. What the numbers mean is decided in package traffic.
//
//	telemetry.go  the process's Telemetry, and the page that it serves
//	scrape.go     reading the proxies of all clusters, again and again
//	metrics.go    the numbers as metrics
//
// Proxies are read by way of the API servers, as by kubectl port-forward: the management plane does not reach addresses of pods, and
// the ports of proxies need not be open to anybody. That takes the right to create pods/portforward, which registration does not give:
// who has it reaches all ports of all pods. An administrator of a cluster gives it to the account of the management plane, or does
// not, and nothing is read there.
package telemetry
