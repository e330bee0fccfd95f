package watch

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// clients makes REST clients for the API groups of one cluster, all over one
// connection.
type clients struct {
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	groups map[schema.GroupVersion]rest.Interface
	bare   rest.Interface
}

// newClients prepares clients that decode into the types of a scheme. It dials
// nobody.
func newClients(config *rest.Config, scheme *runtime.Scheme, contentType string) (*clients, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	// A watch lasts; what must be quick is bounded by its context.
	config.Timeout = 0
	config.ContentType = contentType
	config.AcceptContentTypes = contentType + "," + runtime.ContentTypeJSON
	c := &clients{config: config, codecs: serializer.NewCodecFactory(scheme), groups: map[schema.GroupVersion]rest.Interface{}}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	var err error
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	if c.bare, err = rest.UnversionedRESTClientForConfigAndClient(config, c.http); err != nil {
		return nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	return c, nil
}

// group returns the client for an API group and version.
func (c *clients) group(gv schema.GroupVersion) (rest.Interface, error) {
	if client, ok := c.groups[gv]; ok {
		return client, nil
	}
	config := rest.CopyConfig(c.config)
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.Host, err)
	}
	c.groups[gv] = client
	return client, nil
}

// get reads one path that is no object.
func (c *clients) get(ctx context.Context, path string) ([]byte, error) {
	return c.bare.Get().AbsPath(path).MaxRetries(0).DoRaw(ctx)
}

// closeIdle ends connections that nobody uses, so that the next request finds
// out for itself whether the server answers.
func (c *clients) closeIdle() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
