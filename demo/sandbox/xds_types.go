package main

import (
	"fmt"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Types of resources, as the protocol names them.
const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	secretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

func nameOf(message proto.Message) string {
	if assignment, ok := message.(*endpoint.ClusterLoadAssignment); ok {
		return assignment.ClusterName
	}
	if named, ok := message.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	return ""
}

// references calls refer for each resource that a message needs from the control
// plane itself; what comes from elsewhere, such as certificates from the proxy's
// agent, is left out.
func references(message proto.Message, refer func(url, name string)) error {
	if c, ok := message.(*cluster.Cluster); ok && c.GetType() == cluster.Cluster_EDS {
		name := c.GetEdsClusterConfig().GetServiceName()
		if name == "" {
			name = c.Name
		}
		refer(endpointType, name)
	}
	// Range visits each Any, too.
	err := protorange.Range(message.ProtoReflect(), func(values protopath.Values) error {
		inner, ok := values.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		switch m := inner.Interface().(type) {
		case *hcm.Rds:
			refer(routeType, m.RouteConfigName)
		case *tls.SdsSecretConfig:
			if m.GetSdsConfig().GetAds() != nil {
				refer(secretType, m.Name)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf(message), err)
	}
	return nil
}

// withoutKeys is the message itself, unless it is a Secret: of that, only the name
// and the validation context.
func withoutKeys(message proto.Message) proto.Message {
	secret, ok := message.(*tls.Secret)
	if !ok {
		return message
	}
	public := &tls.Secret{Name: secret.Name}
	if validation := secret.GetValidationContext(); validation != nil {
		public.Type = &tls.Secret_ValidationContext{ValidationContext: &tls.CertificateValidationContext{
			MatchTypedSubjectAltNames: validation.MatchTypedSubjectAltNames,
			MatchSubjectAltNames:      validation.GetMatchSubjectAltNames(),
		}}
	}
	return public
}
