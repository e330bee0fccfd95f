//go:build linux

package telemetry_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/telemetry"
)

// period is how often a proxy sends its numbers, or is read.
const period = 10 * time.Second

// proxies are those of a cluster. They are another process, so that what they cost is not measured.
type proxies struct {
	// Count is how many there are, and Address where the agent takes what they send; if that is empty, they serve Page.
	Count   int
	Address string
	// Certificate is theirs, and Key its private key, in PEM.
	Certificate, Key []byte
	// Message is what each of them sends every period.
	Message []byte
	Page    []byte
}

// asProxies is the variable in the environment that makes this process the proxies of a benchmark.
const asProxies = "TEST_PROXIES"

// TestMain is also where the proxies of a benchmark begin.
func TestMain(m *testing.M) {
	if os.Getenv(asProxies) == "" {
		m.Run()
		return
	}
	if err := be(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start begins a process with proxies, and returns its address. It ends with the benchmark.
func (p *proxies) start(b *testing.B) string {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), asProxies+"=1"), os.Stderr
	in, err := command.StdinPipe()
	require.NoError(b, err)
	out, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	b.Cleanup(func() { _ = in.Close(); _ = command.Wait() })
	require.NoError(b, json.NewEncoder(in).Encode(p))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(line)
}

// be is the process with the proxies, until in ends.
func be(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	var p proxies
	if err := orders.Decode(&p); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- orders.Decode(&struct{}{}) }()
	if p.Address == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{ReadHeaderTimeout: period, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(p.Page) })}
		go func() { ended <- server.Serve(listener) }()
		_, _ = fmt.Fprintln(out, listener.Addr())
		return ignoring(<-ended)
	}
	streams, err := p.dial()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "all have sent")
	for {
		message, err := p.now()
		if err != nil {
			return err
		}
		for _, stream := range streams {
			select {
			case err := <-ended:
				return ignoring(err)
			case <-time.After(period / time.Duration(len(streams))):
			}
			if err := stream.SendMsg(message); err != nil {
				return fmt.Errorf("sending: %w", err)
			}
		}
	}
}

// ignoring is an error that is not about the end of orders.
func ignoring(err error) error {
	if err == io.EOF { //nolint:errorlint // of a decoder, which does not wrap it
		return nil
	}
	return err
}

// from is an address of this machine for each proxy, which the agent takes for that of its pod.
func (p *proxies) from(i int) net.IP { return net.IPv4(127, 1, byte(i>>8), byte(i)) }

// dial begins the stream of each proxy, with its first message.
func (p *proxies) dial() ([]grpc.ClientStream, error) {
	certificate, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, err
	}
	// Envoy's TLS makes records as large as they may be from the first one on.
	config := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	out, errs, group := make([]grpc.ClientStream, p.Count), make([]error, p.Count), sync.WaitGroup{}
	places := make(chan struct{}, 16)
	for i := range p.Count {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: p.from(i)}}
			conn, err := grpc.NewClient("passthrough:///"+p.Address, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(plain{})), grpc.WithTransportCredentials(config),
				grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
					return dialer.DialContext(ctx, "tcp", address)
				}))
			if err != nil {
				errs[i] = err
				return
			}
			if out[i], errs[i] = conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true}, "/envoy.service.metrics.v3.MetricsService/StreamMetrics"); errs[i] == nil {
				errs[i] = out[i].SendMsg(append(telemetry.First(node(i)), p.Message...))
			}
		})
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("proxy %d: %w", i, err)
		}
	}
	return out, nil
}

// node is the ID of a proxy, and pod the name of its pod.
func node(i int) string { return "sidecar~10.1.0.1~" + pod(i) + ".shop~shop.svc.cluster.local" }
func pod(i int) string  { return "web-" + strconv.Itoa(i) }

// now is the message with the time, and counters that have gone on.
func (p *proxies) now() ([]byte, error) {
	families, err := familiesOf(p.Message)
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			m.TimestampMs = proto.Int64(time.Now().UnixMilli())
			if c := m.GetCounter(); c != nil {
				c.Value = proto.Float64(c.GetValue() + float64(time.Now().Unix()%1000))
			}
		}
	}
	return messageOf(families)
}

// plain sends messages as they are.
type plain struct{}

// Name implements encoding.CodecV2.
func (plain) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (plain) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (plain) Unmarshal(mem.BufferSlice, any) error { return nil }

// inPEM is a certificate and its key.
func inPEM(t testing.TB, certificate tls.Certificate) (chain, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// fieldFamilies is that of envoy.service.metrics.v3.StreamMetricsMessage with the statistics.
const fieldFamilies = 2

// familiesOf takes a message apart that has nothing but statistics.
func familiesOf(message []byte) (out []*dto.MetricFamily, err error) {
	for len(message) > 0 {
		_, _, n := protowire.ConsumeTag(message)
		text, m := protowire.ConsumeBytes(message[n:])
		if m < 0 {
			return nil, protowire.ParseError(m)
		}
		f := &dto.MetricFamily{}
		if err := proto.Unmarshal(text, f); err != nil {
			return nil, err
		}
		out, message = append(out, f), message[n+m:]
	}
	return out, nil
}

// messageOf is a message with statistics.
func messageOf(families []*dto.MetricFamily) (out []byte, err error) {
	for _, f := range families {
		text, err := proto.Marshal(f)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, fieldFamilies, protowire.BytesType), text)
	}
	return out, nil
}
