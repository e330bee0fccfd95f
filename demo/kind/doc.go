// Package kind runs the clusters of a demo as kind clusters: nodes are containers of Docker or
// Podman, and pods are real.
//
//	engine.go   the container engine, and the images that it has
//	image.go    the image of meshctl, of the binary that runs
//	cluster.go  creating, opening and deleting a cluster
//	istio.go    Istio, as its own installer renders it
//	app.go      the application in the pods of bookinfo
//	plane.go    requests as a workload
//
// Nodes are made by kind's library (https://kind.sigs.k8s.io), so that the kind command is not
// needed. Clusters reach each other in the network of kind's nodes: the API servers under the
// names of their nodes, the gateways under the addresses of the nodes, as NodePorts.
package kind
