package envoy

import "strings"

// Cluster is a set of endpoints that are connected to in the same way.
type Cluster struct {
	Name             string
	Type             string // EDS, STATIC, STRICT_DNS, ORIGINAL_DST…
	EDSClusterConfig struct{ ServiceName string }
	LoadAssignment   *ClusterLoadAssignment
	OutlierDetection *OutlierDetection
	// TransportSocket is how to connect to the endpoints, unless one of
	// TransportSocketMatches matches.
	TransportSocket        TransportSocket
	TransportSocketMatches []struct {
		Name string
		// Match are metadata of endpoints for which it is.
		Match           map[string]any
		TransportSocket TransportSocket
	}
	Metadata                  Metadata
	UpstreamConnectionOptions struct{ TCPKeepalive *TCPKeepalive }
	CommonLBConfig            struct{ HealthyPanicThreshold struct{ Value float64 } }
}

// OutlierDetection ejects endpoints that return errors.
type OutlierDetection struct {
	Consecutive5XX           *uint32 `json:"consecutive5xx"`
	ConsecutiveGatewayErrors *uint32 `json:"consecutiveGatewayFailure"`
	Interval                 string
	BaseEjectionTime         string
	MaxEjectionPercent       *uint32
}

// TCPKeepalive are probes on idle connections; times in seconds.
type TCPKeepalive struct {
	KeepaliveProbes, KeepaliveTime, KeepaliveInterval uint32
}

// TransportSocket has the TLS settings of connections.
type TransportSocket struct {
	Name        string
	TypedConfig SocketConfig
}

// SocketConfig is the configuration of a transport socket; Type says which.
type SocketConfig struct {
	Type string `json:"@type"`
	SNI  string
	// RequireClientCertificate is that of a server.
	RequireClientCertificate bool
	CommonTLSContext         struct {
		ALPNProtocols                  []string `json:"alpnProtocols"`
		TLSCertificateSDSSecretConfigs []struct{ Name string }
		// CombinedValidationContext has the names of which a server's certificate needs one.
		CombinedValidationContext struct {
			DefaultValidationContext struct {
				MatchSubjectAltNames []struct{ Exact string }
			}
		}
	}
}

func (s *SocketConfig) kind() string { return s.Type[strings.LastIndexAny(s.Type, "./")+1:] }

// ClusterLoadAssignment has the endpoints of a cluster.
type ClusterLoadAssignment struct {
	ClusterName string
	Endpoints   []struct {
		Locality            Locality
		Priority            uint32
		LoadBalancingWeight uint32
		LBEndpoints         []struct {
			Endpoint            struct{ Address Address }
			LoadBalancingWeight uint32
			HealthStatus        string // UNKNOWN, the default, HEALTHY, UNHEALTHY, DRAINING, TIMEOUT, DEGRADED
			Metadata            struct{ FilterMetadata map[string]any }
		}
	}
}

// Locality is the location of endpoints.
type Locality struct{ Region, Zone, SubZone string }

// Endpoint is one address of a cluster.
type Endpoint struct {
	Address string
	Port    uint32
	// Weight is relative to the other endpoints of the group, GroupWeight to other
	// groups of the same Priority; 0 is first.
	Weight, GroupWeight, Priority uint32
	Locality                      Locality
	Metadata                      map[string]any
	// Unhealthy: no requests are sent to it.
	Unhealthy bool
}

// Secret is a secret without its keys.
type Secret struct {
	Name              string
	ValidationContext *struct {
		MatchTypedSubjectAltNames []struct {
			SanType string
			Matcher StringMatcher
		}
		MatchSubjectAltNames []StringMatcher
	}
}
