package kube

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Unlimited returns a copy of a configuration without client-side rate limits:
// API servers limit requests with priority and fairness.
func Unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	return config
}

// ClientOptions configure a Client. Only Serializer is required.
type ClientOptions struct {
	// Serializer decodes what the server sends.
	Serializer runtime.NegotiatedSerializer
	// ContentType is what to ask for before JSON; only JSON if empty.
	ContentType string
	// Budget bounds what the server may send; nothing does if nil.
	Budget *Budget
	// Warnings receives the server's warnings; as the configuration says if nil.
	Warnings rest.WarningHandler
}

// Client sends requests to one API server over one connection.
type Client struct {
	rest.Interface
	host string
	http *http.Client
	// meter counts for the Budget; nil without one.
	meter *meter
}

// NewClient prepares a client without I/O. It has no timeout, since a watch
// lasts: callers bound the context of short requests.
func NewClient(config *rest.Config, o ClientOptions) (*Client, error) {
	config = Unlimited(config)
	config.Timeout = 0
	config.ContentConfig = rest.ContentConfig{
		ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON, NegotiatedSerializer: o.Serializer,
	}
	if o.ContentType != "" {
		config.ContentType = o.ContentType
		config.AcceptContentTypes = o.ContentType + "," + runtime.ContentTypeJSON
	}
	if o.Warnings != nil {
		config.WarningHandler, config.WarningHandlerWithContext = o.Warnings, nil
	}
	var count *meter
	if o.Budget != nil {
		count = &meter{Budget: o.Budget, server: config.Host}
		config.NegotiatedSerializer = meteredSerializer{o.Serializer, count}
		config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &metered{count, base} })
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connection settings for %s: %w", config.Host, err)
	}
	api, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connection settings for %s: %w", config.Host, err)
	}
	return &Client{Interface: api, host: config.Host, http: client, meter: count}, nil
}

// Host is the URL of the API server.
func (c *Client) Host() string { return c.host }

// Read returns the body at a path that is no object, such as /version.
func (c *Client) Read(ctx context.Context, path string) ([]byte, error) {
	return c.Get().AbsPath(path).MaxRetries(0).DoRaw(ctx)
}

// CloseIdle closes connections that are not in use, so that the next request opens
// a new one.
func (c *Client) CloseIdle() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// Path is the URL path of the objects of a kind, in all namespaces if namespace
// is empty; or of the one called name, if that is not empty, and its subresource.
func Path(k snapshot.Kind, namespace, name, subresource string) []string {
	info := k.Info()
	segments := []string{"/apis", info.Group, info.Version}
	if info.Group == "" {
		segments = []string{"/api", info.Version}
	}
	if namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, info.Resource)
	if name != "" {
		segments = append(segments, name)
	}
	if subresource != "" {
		segments = append(segments, subresource)
	}
	return segments
}

// optionsVersion is the version in which metav1.ParameterCodec knows ListOptions.
var optionsVersion = schema.GroupVersion{Version: "v1"}
