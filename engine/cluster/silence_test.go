package cluster_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestAServerThatFallsSilentIsNoticed opens a watch and then takes the network
// away without closing anything: no packet says that the server is gone.
func TestAServerThatFallsSilentIsNoticed(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "waits for timeouts")
	const name = "silent"
	config := sandboxtest.APIServer(t)
	line := newLine(t, strings.TrimPrefix(config.Host, "https://"))
	_, err := registration.Register(t.Context(), registration.Options{Name: name, RemoteConfig: config, MgmtConfig: config,
		MgmtNamespace: name, RemoteNamespace: remoteNamespace(name), APIServerAddress: line.address})
	require.NoError(t, err)
	_, r := run(t, config, name)
	members, _ := r.state()
	clientset := sandboxtest.Clientset(t, members[name].Config)
	pods, err := clientset.CoreV1().Pods(metav1.NamespaceAll).Watch(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	defer pods.Stop()

	line.cut.Store(true)
	start := time.Now()
	for open := true; open; {
		select {
		case _, open = <-pods.ResultChan():
		case <-time.After(waittest.Limit()):
			t.Fatal("the watch stays open, though nobody is at the other end")
		}
	}
	t.Logf("noticed after %s", time.Since(start).Round(time.Second))
}

// line forwards to a server until it is cut; then it swallows everything.
type line struct {
	address string
	cut     atomic.Bool
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	listener := sandboxtest.Listen(t, "127.0.0.1:0")
	ctx := t.Context()
	l := &line{address: listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
			go l.forward(in, out)
			go l.forward(out, in)
		}
	}()
	return l
}

func (l *line) forward(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if l.cut.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
