package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/engine/kube"
	relay "github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Pauses before the agent asks the hub for its first certificate again.
const enrollFirst, enrollMost = time.Second, time.Minute

// relayRun speaks for the cluster until ctx ends.
// It reports whether the cluster is deregistered, and the agent has removed itself.
func relayRun(ctx context.Context, config *rest.Config, opts *Options, log *slog.Logger, watched *relayed) (left bool, err error) {
	client, err := kube.NewClientset(kube.Unlimited(config))
	if err != nil {
		return false, fmt.Errorf("the agent's API server: %w", err)
	}
	keeper := &enroll.Keeper{Client: client, Namespace: opts.Namespace, Cluster: opts.RelayCluster, Plane: opts.RelayPlane, ServerName: opts.RelayName, Log: log, Now: time.Now}
	uid, ok := enrolled(ctx, client, keeper, opts, watched)
	if !ok {
		return false, nil
	}
	certificate := newMeshCertificate(client, opts)
	agent, err := relay.New(relay.Options{
		Cluster: keeper.Cluster, UID: uid, Plane: snapshot.Plane{Namespace: opts.PlaneNamespace, ID: keeper.Plane}, Config: config, Hub: opts.RelayServer,
		Dial:    []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(keeper.TLS()))},
		TLS:     keeper.TLS,
		Version: opts.Version, Log: log, Disk: relay.ConfigMaps{Client: client, Namespace: opts.Namespace},
		Push: pushOptions(certificate, opts, log), Mesh: certificate.current,
		Home: relay.Registered{Client: client, Namespace: opts.Namespace, Plane: keeper.Plane},
	})
	if err != nil {
		return false, err
	}
	watched.runs(agent, keeper)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	group.Go(func() { keeper.Run(ctx) })
	group.Go(func() { agent.Run(ctx); end() })
	group.Wait()
	return agent.Left(), nil
}

// enrolled waits until the agent has a certificate, and returns the UID of its cluster; false if ctx has ended.
func enrolled(ctx context.Context, client kube.Clientset, keeper *enroll.Keeper, opts *Options, watched *relayed) (uid string, ok bool) {
	for failures := 1; ; failures++ {
		uid, err := clusterUID(ctx, client)
		if err == nil {
			keeper.Hub = relay.Enroller{Hub: opts.RelayServer, UID: uid, Version: opts.Version}
			err = keeper.Start(ctx)
		}
		if ctx.Err() == nil {
			watched.starts(opts.RelayServer, err)
		}
		if err == nil {
			return uid, true
		}
		pause := kube.Backoff(enrollFirst, enrollMost, failures)
		if ctx.Err() == nil {
			keeper.Log.Warn("the agent has no certificate for the hub; trying again", "hub", opts.RelayServer, "error", err, "pause", pause)
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-time.After(pause):
		}
	}
}

// clusterUID is that of the namespace kube-system, by which a cluster is told from others.
func clusterUID(ctx context.Context, client kube.Clientset) (string, error) {
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}
