package telemetry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// authority is the CA of a mesh.
type authority struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	text, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	require.NoError(t, err)
	root, err := x509.ParseCertificate(text)
	require.NoError(t, err)
	return &authority{key, root}
}

// give makes a certificate with an identity.
func (a *authority) give(t testing.TB, identity string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if identity != "" {
		uri, err := url.Parse(identity)
		require.NoError(t, err)
		of.URIs = []*url.URL{uri}
	}
	text, err := x509.CreateCertificate(rand.Reader, of, a.root, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

// elsewhere has connections come from the address of a pod.
type elsewhere struct {
	net.Listener
	from string
}

func (l elsewhere) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return fromThere{conn, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(l.from), 40000))}, nil
}

type fromThere struct {
	net.Conn
	addr net.Addr
}

func (c fromThere) RemoteAddr() net.Addr { return c.addr }

// raw sends messages as they are.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

// pushing is a receiver of which a test may have several callers.
type pushing struct {
	local   *Local
	push    *Push
	ca      *authority
	address string
}

func meshed(namespace, name, account, ip string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Spec.ServiceAccountName = namespace, name, account
	pod.Spec.Containers = []corev1.Container{{Name: "istio-proxy"}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, ip
	return pod
}

// newPushing receives from one address.
func newPushing(t *testing.T, from string) *pushing {
	t.Helper()
	shared := []*corev1.Pod{
		meshed("shop", "web-1", "web", "10.0.0.1"), meshed("shop", "cart-1", "cart", "10.0.0.2"), meshed("other", "x", "", "10.0.0.3"),
		meshed("shop", "twin-1", "web", "10.0.0.4"), meshed("shop", "twin-2", "web", "10.0.0.4"), meshed("shop", "web-2", "web", "10.0.0.6"),
	}
	c := &snapshot.Cluster{Name: "west", Sync: snapshot.Synced, Pods: shared}
	p := &pushing{ca: newAuthority(t)}
	p.local = NewLocal(LocalOptions{Cluster: func() *snapshot.Cluster { return c }, Dialects: engine.Dialects()})
	p.local.Want(traffic.Push)
	server := &tls.Config{Certificates: []tls.Certificate{p.ca.give(t, "spiffe://cluster.local/ns/gloo-mesh/sa/agent")}, ClientCAs: p.ca.roots()}
	p.push = NewPush(p.local, PushOptions{TLS: server, settled: time.Millisecond, pause: time.Nanosecond})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.push.serve(ctx, elsewhere{listener, from}) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
	return p
}

// dial begins a stream with a certificate.
func (p *pushing) dial(t *testing.T, certificates ...tls.Certificate) grpc.ClientStream {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.address, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{Certificates: certificates, InsecureSkipVerify: true})))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	t.Cleanup(cancel)
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/envoy.service.metrics.v3.MetricsService/StreamMetrics")
	if err != nil {
		return failed{err: err}
	}
	return out
}

type failed struct {
	grpc.ClientStream
	err error
}

func (f failed) SendMsg(any) error { return f.err }
func (f failed) RecvMsg(any) error { return f.err }

// from is the begin of the first message of a node.
func from(node string) []byte {
	id := protowire.AppendString(protowire.AppendTag(nil, fieldID, protowire.BytesType), node)
	of := protowire.AppendBytes(protowire.AppendTag(nil, fieldNode, protowire.BytesType), id)
	return protowire.AppendBytes(protowire.AppendTag(nil, fieldIdentifier, protowire.BytesType), of)
}

func message(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/push/" + name)
	require.NoError(t, err)
	return text
}

// next waits until something is handed over.
func (p *pushing) next(t *testing.T) *Sent {
	t.Helper()
	for {
		if s, more := p.local.Next(); more {
			return s
		}
		select {
		case <-p.local.Signal():
		case <-time.After(waittest.Limit()):
			require.Fail(t, "nothing was handed over")
		}
	}
}

const (
	webID   = "spiffe://cluster.local/ns/shop/sa/web"
	webNode = "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"
)

// TestPush: what a real Envoy sent counts as what was requested of it: 5 pages, and one that was not found.
func TestPush(t *testing.T) {
	t.Parallel()
	p := newPushing(t, "10.0.0.1")
	stream := p.dial(t, p.ca.give(t, webID))
	counted := func(s *Sent) string {
		assert.Equal(t, traffic.Proxy{Cluster: "west", Namespace: "shop", Pod: "web-1", Created: s.Proxy.Created}, s.Proxy)
		require.NotNil(t, s.Parts)
		assert.True(t, s.Parts.Counts)
		require.Len(t, s.Parts.Clusters, 1)
		part := s.Parts.Clusters[0]
		assert.Equal(t, "reviews.bookinfo.svc.cluster.local:9080", fmt.Sprintf("%s:%d", part.Host, part.Port))
		text := ""
		for i, m := range part.Measures {
			text += fmt.Sprintf("%s %d, ", snapshot.Measure(m), part.Values[i])
		}
		latencies := uint64(0)
		for _, n := range part.Latency {
			latencies += n
		}
		return fmt.Sprint(text, "latencies ", latencies)
	}
	const want = "2xx 5, 4xx 1, connections 6, sent_bytes 1174, received_bytes 4460, latencies 6"
	first := append(from(webNode), message(t, "envoy-1.40.0-requests.bin")...)
	require.NoError(t, stream.SendMsg(&first))
	assert.Equal(t, want, counted(p.next(t)))
	// The histogram of the next interval has nothing; what came before stays.
	second := message(t, "envoy-1.40.0-none.bin")
	require.NoError(t, stream.SendMsg(&second))
	assert.Equal(t, want, counted(p.next(t)))
	assert.Zero(t, p.push.Refused())
}

// TestPushOfAnother: who reports for another pod is refused, whatever of it is forged.
func TestPushOfAnother(t *testing.T) {
	t.Parallel()
	stranger := newAuthority(t)
	for name, tt := range map[string]struct {
		from, identity, node string
		foreign, none        bool
		want                 string // empty if the handshake ends it
	}{
		"another pod's name":              {"10.0.0.1", webID, "sidecar~10.0.0.2~cart-1.shop~shop.svc.cluster.local", false, false, "a proxy reports its own numbers only"},
		"a pod of the same account":       {"10.0.0.1", webID, "sidecar~10.0.0.6~web-2.shop~shop.svc.cluster.local", false, false, "a proxy reports its own numbers only"},
		"no node":                         {"10.0.0.1", webID, "", false, false, "a proxy reports its own numbers only"},
		"a node of escapes":               {"10.0.0.1", webID, "sidecar~\x1b[2J~\x1b~x", false, false, "a proxy reports its own numbers only"},
		"another account":                 {"10.0.0.1", "spiffe://cluster.local/ns/shop/sa/cart", webNode, false, false, "its certificate has the identity"},
		"another namespace":               {"10.0.0.1", "spiffe://cluster.local/ns/other/sa/web", webNode, false, false, "its certificate has the identity"},
		"a longer path":                   {"10.0.0.1", webID + "/x", webNode, false, false, "its certificate has the identity"},
		"an identity without a domain":    {"10.0.0.1", "spiffe:///ns/shop/sa/web", webNode, false, false, "its certificate has the identity"},
		"an https identity":               {"10.0.0.1", "https://cluster.local/ns/shop/sa/web", webNode, false, false, "its certificate has the identity"},
		"no identity":                     {"10.0.0.1", "", webNode, false, false, "its certificate has the identity"},
		"from the address of another pod": {"10.0.0.2", webID, webNode, false, false, "its certificate has the identity"},
		"from two pods' address":          {"10.0.0.4", webID, "sidecar~10.0.0.4~twin-1.shop~x", false, false, "2 pods have the address"},
		"from no pod":                     {"10.0.0.5", webID, webNode, false, false, "no pod with a proxy has this address"},
		"a certificate of another mesh":   {"10.0.0.1", webID, webNode, true, false, ""},
		"no certificate":                  {"10.0.0.1", webID, webNode, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPushing(t, tt.from)
			ca, certificates := p.ca, []tls.Certificate(nil)
			if tt.foreign {
				ca = stranger
			}
			if !tt.none {
				certificates = append(certificates, ca.give(t, tt.identity))
			}
			stream := p.dial(t, certificates...)
			first := append(from(tt.node), message(t, "envoy-1.40.0-requests.bin")...)
			_ = stream.SendMsg(&first) // the answer says what became of it
			var answer []byte
			err := stream.RecvMsg(&answer)
			require.Error(t, err)
			if tt.want == "" {
				assert.Equal(t, codes.Unavailable, status.Code(err), err)
			} else {
				assert.Equal(t, codes.PermissionDenied, status.Code(err), err)
				assert.Contains(t, err.Error(), tt.want)
				assert.NotContains(t, err.Error(), "\x1b")
				assert.Equal(t, uint64(1), p.push.Refused())
			}
			_, more := p.local.Next()
			assert.False(t, more, "nothing of it counts")
		})
	}
}

// TestPushMessages: messages that are none end the stream, and no more.
func TestPushMessages(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][]byte{
		"no message": []byte("\xff\xff\xff"), "a cut one": message(t, "envoy-1.40.0-requests.bin")[:1000],
		"a statistic that is none": protowire.AppendBytes(protowire.AppendTag(nil, fieldMetrics, protowire.BytesType), []byte("\xff")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, (&pushed{}).read(text))
		})
	}
}
