package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	// Registers every type that a control plane may put into an Any.
	_ "istio.io/istio/pkg/config/xds"
)

// xdsOptions are the flags of the role xds.
type xdsOptions struct {
	address, node, metadata   string
	ca, cert, key, serverName string
	timeout                   time.Duration
}

// xds requests from a control plane all configuration of one proxy, prints it as
// JSON and exits. It is a client of the aggregated discovery service (state of the
// world), so it works with any control plane of Envoy proxies.
func xds(args []string) int {
	var o xdsOptions
	flags := pflag.NewFlagSet("xds", pflag.ContinueOnError)
	flags.StringVar(&o.address, "address", "", "host:port of the control plane")
	flags.StringVar(&o.node, "node", "", "the proxy's node id")
	flags.StringVar(&o.metadata, "metadata", "{}", "the proxy's node metadata, a JSON object")
	flags.StringVar(&o.ca, "ca", "", "file with the authority of the control plane; plain text without it")
	flags.StringVar(&o.cert, "cert", "", "file with the proxy's certificate")
	flags.StringVar(&o.key, "key", "", "file with the key of --cert")
	flags.StringVar(&o.serverName, "server-name", "", "name that the control plane's certificate must have")
	flags.DurationVar(&o.timeout, "timeout", 20*time.Second, "how long to wait until nothing is missing")
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintf(os.Stderr, "xds: %v\n", err)
		return 2
	}
	if err := o.run(); err != nil {
		fmt.Fprintf(os.Stderr, "xds: %v\n", err)
		return 1
	}
	return 0
}

func (o *xdsOptions) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	transport, err := o.credentials()
	if err != nil {
		return err
	}
	metadata := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(o.metadata), metadata); err != nil {
		return fmt.Errorf("--metadata: %w", err)
	}
	connection, err := grpc.NewClient(o.address, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)))
	if err != nil {
		return fmt.Errorf("%s: %w", o.address, err)
	}
	defer func() { _ = connection.Close() }()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", o.address, err)
	}
	s := newXDSStream(stream, &core.Node{Id: o.node, Metadata: metadata})
	if err := s.collect(); err != nil {
		return fmt.Errorf("%s, as %s: %w", o.address, o.node, err)
	}
	config, err := s.config()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(config)
}

// credentials are TLS if an authority is given, with the proxy's own
// certificate if there is one.
func (o *xdsOptions) credentials() (credentials.TransportCredentials, error) {
	if o.ca == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca %s: no certificate in it", o.ca)
	}
	config := &tls.Config{RootCAs: roots, ServerName: o.serverName, MinVersion: tls.VersionTLS12}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--cert, --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}
