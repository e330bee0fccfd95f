// Package local brings up Kubernetes clusters with Istio as plain processes of
// this machine: no container engine, no root. The processes are the roles of
// the helper binary (package helper); pods are played by kwok, and istiod runs
// beside the cluster it serves.
//
// A cluster owns one folder:
//
//	state.json       processes, ports, versions: all that is needed to find it again
//	kubeconfig       for people and for meshctl; one context, named after the cluster
//	pki/             authorities, keys, certificates, kubeconfigs of the components
//	etcd/            the data
//	logs/            one file a process, and audit.log of the API server
//
// No proxy runs in the pods; Cluster.Proxy asks the control plane what it would
// tell one.
//
// For tests there is Open Service Mesh instead of Istio (Cluster.InstallOSM).
//
// Everything listens on 127.0.0.1 only, but osm-controller, which cannot.
package local
