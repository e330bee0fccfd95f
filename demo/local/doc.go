// Package local runs Kubernetes clusters with Istio as plain processes on this
// machine: no container engine, no root. The processes are the roles of the
// helper binary (package helper); kwok simulates the pods, and istiod runs
// outside its cluster.
//
// A cluster owns one folder:
//
//	state.json       processes, ports, versions: all that Open needs
//	kubeconfig       for users and for meshctl; one context, named after the cluster
//	pki/             authorities, keys, certificates, kubeconfigs of the components
//	etcd/            the data
//	agent/           the credentials of the mesh's agent
//	logs/            one file for each process, and audit.log of the API server
//
// Package proxies runs real proxies for the pods of clusters that are started with
// RealProxies. In others no proxy runs; Cluster.Proxy gets the configuration that
// the control plane would send to a proxy.
//
// Tests can install Open Service Mesh instead of Istio (Cluster.InstallOSM).
//
// Everything listens on 127.0.0.1 only, except for osm-controller, which cannot.
package local
