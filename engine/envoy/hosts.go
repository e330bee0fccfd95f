package envoy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Host is how a proxy finds an address that it connects to.
type Host struct {
	// Address is host:port.
	Address string
	// Connections were opened to it since the proxy knows it, of which Failed failed.
	Connections, Failed uint64
	// Excluded: health checks or outlier detection keep requests from it at present.
	Excluded bool
}

// ParseHosts reads what Envoy answers to /clusters?format=json (envoy.admin.v3.Clusters): a Host for each address in each of its
// clusters. Those without a port are left out.
func ParseHosts(data []byte) ([]Host, error) {
	var answer struct {
		ClusterStatuses []struct {
			HostStatuses []struct {
				Address struct {
					SocketAddress struct {
						Address   string
						PortValue uint32
					}
				}
				Stats []struct {
					Name string
					// Value is a number, or a text with one, as in all JSON of 64 bits (protobuf.dev: ProtoJSON); none is 0.
					Value json.RawMessage
				}
				HealthStatus struct {
					FailedActiveHealthCheck, FailedOutlierCheck bool
				}
			}
		}
	}
	if err := json.Unmarshal(camelKeys(data), &answer); err != nil {
		return nil, fmt.Errorf("what a proxy connects to: %w", err)
	}
	var out []Host
	for _, cluster := range answer.ClusterStatuses {
		for _, h := range cluster.HostStatuses {
			at := h.Address.SocketAddress
			if at.PortValue == 0 {
				continue
			}
			host := Host{
				Address:  hostPort(at.Address, at.PortValue),
				Excluded: h.HealthStatus.FailedActiveHealthCheck || h.HealthStatus.FailedOutlierCheck,
			}
			for _, stat := range h.Stats {
				switch stat.Name {
				case "cx_total":
					host.Connections = count(stat.Value)
				case "cx_connect_fail":
					host.Failed = count(stat.Value)
				}
			}
			out = append(out, host)
		}
	}
	return out, nil
}

// hostPort is an address with a port, as in URLs.
func hostPort(address string, port uint32) string {
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return address + ":" + strconv.FormatUint(uint64(port), 10)
}

// count reads a counter; what is none counts nothing.
func count(raw json.RawMessage) uint64 {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
