// Package telemetry reads what proxies count, and keeps the last 15 minutes of it in memory: a Telemetry belongs to a process, and counts
// while that leads. What the numbers mean is decided in package traffic.
//
//	telemetry.go   the process's Telemetry, and the page that it serves
//	scrape.go      rounds over all clusters; reading proxies by way of the API server
//	agents.go      what agents have read
//	prometheus.go  what a Prometheus has read
//	local.go       an agent's side: reading the proxies of its own cluster
//	push.go        an agent's side: the port to which proxies send by themselves, and who may
//	pushsender.go  how much one of them may send
//	pushconn.go    what all streams of one of them may have begun to send
//	pushnumbers.go what one stream of a proxy says
//	logs.go        an agent's side: access logs, at the same port
//	logbook.go     the access logs since this process leads
//	page.go        the pages of one proxy
//	metrics.go     the numbers as metrics, counters.go those of edges
//	rest.go        the REST API of Gloo Mesh 1.x
//	shifts.go      the weights and shares of shifts, as metrics
//
// Numbers of a cluster come in through one of four doors.
//
// Scrape: proxies are read by way of the API servers, as by kubectl port-forward: the management plane does not reach addresses of pods, and
// the ports of proxies need not be open to anybody. That takes the right to create pods/portforward, which registration does not give:
// who has it reaches all ports of all pods. An administrator of a cluster gives it to the account of the management plane, or does
// not, and nothing is read there.
//
// Agent: the agent of a cluster that is reached through it reads the proxies at the addresses of their pods, which it knows anyway. Istio's
// proxies serve their statistics to everybody in the cluster at port 15090, by plain HTTP and without anything else (istio.io: Ports used by
// Istio): that takes no right at the API server. Whatever answers at the address of a pod counts as that pod, and as no other.
//
// Push: the proxies send the same counters to the agent by Envoy's metrics service, with a certificate of their mesh. That takes settings of the
// mesh, and pods that started after them; it works where the agent may not connect to pods. The address, the identity in the certificate and
// the ID of the node have to be of one pod; the first two are known before anything is read. Of the streams of a pod, the one that began last
// counts. A proxy sends nothing of what it has not used: whether it counts requests before its first one, its settings say, which it sends, too.
// Of Istio's own metrics, whose labels are part of the name then, none are read: those of clusters are.
//
// Prometheus: a server that has read the proxies is asked for the same counters, by pod. Where a Prometheus has several replicas, an answer
// may be older than the one before; see traffic.Reading.
package telemetry
