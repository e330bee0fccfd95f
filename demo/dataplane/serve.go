package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// kubeletConfig is where a cluster's kubelet serves its API server, and by which
// certificates they know each other.
type kubeletConfig struct {
	// Address is that of the port that the nodes' status names.
	Address string `json:"address"`
	// Certificate and Key are the kubelet's, and CA the file of the authority that
	// signed the API server's.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	// Client is the common name of the API server's certificate. Whoever else has a
	// certificate of CA goes through the API server, which asks what they may do.
	Client string `json:"client"`
}

// serveKubelet serves what an API server passes on to the kubelets of its nodes for
// `kubectl port-forward`, `exec` and `logs`, until ctx ends. It returns when it listens.
func (n *node) serveKubelet(ctx context.Context, c *cluster) error {
	certificate, err := tls.LoadX509KeyPair(c.Kubelet.Certificate, c.Kubelet.Key)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(c.Kubelet.CA)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca) {
		return fmt.Errorf("%s: it has no certificate", c.Kubelet.CA)
	}
	server := &http.Server{
		Handler: c.onlyAPIServer(n.streams(c)), ReadHeaderTimeout: time.Minute,
		// Streams need HTTP/1.1: they upgrade its connections.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
			ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		},
	}
	listener, err := net.Listen("tcp", c.Kubelet.Address)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go func() {
		if err := server.ServeTLS(listener, "", ""); ctx.Err() == nil {
			log.Printf("kubelet of %s: %v", c.Name, err)
		}
	}()
	return nil
}

// onlyAPIServer refuses whoever is not the API server.
func (c *cluster) onlyAPIServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client := r.TLS.PeerCertificates[0].Subject.CommonName; client != c.Kubelet.Client {
			http.Error(w, fmt.Sprintf("%s may not use the kubelet; ask the API server", client), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// streams are the paths of a kubelet that API servers use, with the UID of the pod and
// without (k8s.io/kubernetes/pkg/kubelet/server).
func (n *node) streams(c *cluster) http.Handler {
	mux := http.NewServeMux()
	for _, uid := range []string{"", "/{uid}"} {
		mux.HandleFunc("/portForward/{namespace}/{pod}"+uid, n.ofPod(c, servePortForward))
		mux.HandleFunc("/exec/{namespace}/{pod}"+uid+"/{container}", n.ofPod(c, serveExec))
	}
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.ofPod(c, serveLogs))
	return mux
}

// ofPod finds the pod of a request.
func (n *node) ofPod(c *cluster, serve func(p *pod, w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, p := range n.all() {
			uid := r.PathValue("uid")
			if p.cluster == c && p.Namespace == r.PathValue("namespace") && p.Pod == r.PathValue("pod") && (uid == "" || uid == p.uid) {
				serve(p, w, r)
				return
			}
		}
		http.Error(w, fmt.Sprintf("pod %s/%s: it does not run here; of a demo's pods, those with a proxy do", r.PathValue("namespace"), r.PathValue("pod")), http.StatusNotFound)
	}
}
