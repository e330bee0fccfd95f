package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ParseDump reads what Envoy answers to /config_dump?include_eds (envoy.admin.v3.ConfigDump): the configuration that it holds. Listeners
// and clusters that are warming, and those that it refused, are not in use: Refused says what was.
func ParseDump(data []byte) (*Config, error) {
	var dump struct {
		Configs []json.RawMessage
	}
	if err := json.Unmarshal(camelKeys(data), &dump); err != nil {
		return nil, fmt.Errorf("a proxy's configuration: %w", err)
	}
	c, listeners := &Config{}, false
	for _, section := range dump.Configs {
		var of struct {
			Type string `json:"@type"`
		}
		err := json.Unmarshal(section, &of)
		if err == nil {
			err = c.addSection(of.Type[strings.LastIndexByte(of.Type, '.')+1:], section)
		}
		if err != nil {
			return nil, fmt.Errorf("a proxy's configuration: %.100s: %w", of.Type, err)
		}
		listeners = listeners || strings.HasSuffix(of.Type, ".ListenersConfigDump")
	}
	if !listeners {
		return nil, errors.New("a proxy's configuration: it has no listeners; want the answer of Envoy to /config_dump")
	}
	return c, nil
}

// refusal is why a proxy does not use what it was sent (envoy.admin.v3.UpdateFailureState).
type refusal struct{ Details string }

// addSection adds a section of a dump; those that decide nothing are left out.
func (c *Config) addSection(kind string, data []byte) error {
	switch kind {
	case "ListenersConfigDump":
		var s struct {
			StaticListeners  []struct{ Listener Listener }
			DynamicListeners []struct {
				Name        string
				ActiveState *struct{ Listener Listener }
				ErrorState  *refusal
			}
		}
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		for _, l := range s.StaticListeners {
			c.Listeners = append(c.Listeners, l.Listener)
		}
		for _, l := range s.DynamicListeners {
			if l.ActiveState != nil {
				c.Listeners = append(c.Listeners, l.ActiveState.Listener)
			}
			c.refuse("listener "+l.Name, l.ErrorState)
		}
	case "RoutesConfigDump":
		// Static routes are those inside of listeners.
		var s struct {
			DynamicRouteConfigs []struct {
				RouteConfig RouteConfiguration
				ErrorState  *refusal
			}
		}
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		for _, r := range s.DynamicRouteConfigs {
			c.Routes = append(c.Routes, r.RouteConfig)
			c.refuse("routes "+r.RouteConfig.Name, r.ErrorState)
		}
	case "ClustersConfigDump":
		type one struct {
			Cluster    Cluster
			ErrorState *refusal
		}
		var s struct{ StaticClusters, DynamicActiveClusters []one }
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		for _, o := range append(s.StaticClusters, s.DynamicActiveClusters...) {
			c.Clusters = append(c.Clusters, o.Cluster)
			c.refuse("cluster "+o.Cluster.Name, o.ErrorState)
		}
	case "EndpointsConfigDump":
		type one struct{ EndpointConfig ClusterLoadAssignment }
		var s struct{ StaticEndpointConfigs, DynamicEndpointConfigs []one }
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		for _, o := range append(s.StaticEndpointConfigs, s.DynamicEndpointConfigs...) {
			c.Endpoints = append(c.Endpoints, o.EndpointConfig)
		}
	}
	return nil
}

func (c *Config) refuse(what string, why *refusal) {
	if why != nil {
		c.Refused = append(c.Refused, what+": "+why.Details)
	}
}

// asNamed are the fields whose keys are no fields: maps, and structs of any content.
var asNamed = map[string]bool{
	"filter_metadata": true, "typed_filter_metadata": true, "policies": true, "typed_per_filter_config": true, "typed_extension_protocol_options": true,
}

// camelKeys writes the names of fields as protojson does, filterChains instead of filter_chains, as the admin interface of Envoy writes
// them as they are in protocol buffers. It changes nothing else, and does not check the syntax.
func camelKeys(data []byte) []byte {
	out := make([]byte, 0, len(data))
	// kept is how deep the keys of a map, or all that is below metadata, stay as they are.
	depth, keptAt, keptAll := 0, -1, false
	key := ""
	for i := 0; i < len(data); i++ {
		switch b := data[i]; b {
		case '{', '[':
			depth++
			if keptAt < 0 && asNamed[key] {
				keptAt, keptAll = depth, strings.HasSuffix(key, "metadata")
			}
			key = ""
			out = append(out, b)
		case '}', ']':
			if depth == keptAt {
				keptAt = -1
			}
			depth--
			out = append(out, b)
		case '"':
			end := i + 1
			for end < len(data) && data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(data)-1)
			text := data[i : end+1]
			if isKey(data[end+1:]) {
				key = string(text[1:max(1, len(text)-1)])
				if keptAt < 0 || depth > keptAt && !keptAll {
					text = camel(text)
				}
			}
			out = append(out, text...)
			i = end
		case ',':
			key = ""
			out = append(out, b)
		default:
			out = append(out, b)
		}
	}
	return out
}

// isKey reports whether a string before the rest is the key of an object.
func isKey(rest []byte) bool {
	for _, b := range rest {
		switch b {
		case ' ', '\t', '\n', '\r':
		default:
			return b == ':'
		}
	}
	return false
}

// camel is a name in camel case; what is none stays as it is.
func camel(name []byte) []byte {
	out := make([]byte, 0, len(name))
	for i, b := range name[1 : len(name)-1] {
		switch {
		case b == '_':
		case b >= 'a' && b <= 'z' && name[i] == '_':
			out = append(out, b-'a'+'A')
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9':
			out = append(out, b)
		default:
			return name
		}
	}
	return append(append([]byte{'"'}, out...), '"')
}
