package wizards

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// VirtualDestination is the form of VirtualDestinations.
func VirtualDestination() *Form {
	f := &Form{Kind: snapshot.VirtualDestination, sections: []section{
		{"Name and port", askHost},
		{"Callers", askWhereVisible}, {"Services", askBehind},
	}, requires: []requirement{
		{"hostname", "--hostname"},
		{"port", "--port"},
		{"virtualMesh|meshList", "where it is visible: --virtual-mesh or --mesh"},
		{"static|localized", "what stands behind it: --service, or --nearest, --nearest-namespaces, --nearest-clusters or --nearest-labels"},
	}}
	add := func(flag, path, usage string, c codec) {
		f.Fields = append(f.Fields, Field{Flag: flag, Path: path, Usage: usage, codec: c})
	}
	const selected = "localized.destinationSelectors[0]"
	add("hostname", "hostname", "name by which it is called, such as reviews.global", text("name"))
	add("port", "port.number", "port by which it is called", number())
	add("protocol", "port.protocol", "protocol spoken on the port: HTTP (default), HTTPS, GRPC, HTTP2, MONGO, TCP, TLS", text("protocol"))
	add("target-port", "port.targetNumber", "port of the services behind it, if it is another one", number())
	add("virtual-mesh", "virtualMesh", "the members of this VirtualMesh see it, as namespace/name", one("virtualmesh", parseObject, formatObject))
	add("mesh", "meshList.meshes", "this mesh sees it, as namespace/name", each("mesh", parseObject, formatObject))
	add("service", "static.destinations", "this service stands behind it; of several, each takes over from the one before", each("service", parseBacking, formatBacking))
	add("nearest", selected+".kubeServiceRefs.services", "callers get the nearest of these services, one in each cluster", each("service", parseService, formatService))
	f.Fields = append(f.Fields, matcherFields("nearest", selected+".kubeServiceMatcher", "callers get the nearest of the services", true)...)
	add("outlier-errors", "localized.outlierDetection.consecutiveErrors", "with --nearest: consecutive errors after which an endpoint counts as failing", number())
	add("outlier-interval", "localized.outlierDetection.interval", "with --nearest: interval at which endpoints are checked", duration())
	add("outlier-ejection-time", "localized.outlierDetection.baseEjectionTime", "with --nearest: how long an endpoint is not used the first time", duration())
	return f
}

func parseBacking(s string) (any, error) {
	ref, err := parseService(s)
	if err != nil {
		return nil, err
	}
	return map[string]any{"kubeService": ref}, nil
}

func formatBacking(v any) (string, bool) {
	m, _ := v.(map[string]any)
	name, ok := formatService(m["kubeService"])
	return name, ok && len(m) == 1
}

// ServiceDependency is the form of ServiceDependencies.
func ServiceDependency() *Form {
	f := &Form{Kind: snapshot.ServiceDependency, sections: []section{
		{"Callers", (*Session).askSources}, {"Destinations", (*Session).askDestinations},
	}, requires: []requirement{
		{"sourceSelectors", "--all-sources, --source-namespaces, --source-clusters or --source-labels"},
		{"destinationSelectors", "--all-destinations, --destination, --destination-namespaces, --destination-clusters or --destination-labels"},
	}}
	f.Fields = append(f.Fields, Field{Flag: "all-sources", Unless: "sourceSelectors", Usage: "all workloads call them", codec: boolean()})
	f.Fields = append(f.Fields, matcherFields("source", "sourceSelectors[0].kubeWorkloadMatcher", "callers", true)...)
	f.Fields = append(f.Fields, destinationFields("destinationSelectors")...)
	return f
}

// AccessLogRecord is the form of AccessLogRecords.
func AccessLogRecord() *Form {
	f := &Form{Kind: snapshot.AccessLogRecord, sections: []section{
		{"Workloads", askLogged}, {"Requests", askFilter},
		{"Headers", inputs([3]string{"request-header", "Which request headers to log, too? Empty means none.", ""},
			[3]string{"response-header", "Which response headers to log, too? Empty means none.", ""})},
	}, requires: []requirement{
		{"workloadSelectors", "--all-workloads, --workload-namespaces, --workload-clusters or --workload-labels"},
	}}
	f.Fields = append(f.Fields, Field{Flag: "all-workloads", Unless: "workloadSelectors", Usage: "log requests of all workloads", codec: boolean()})
	f.Fields = append(f.Fields, matcherFields("workload", "workloadSelectors[0].kubeWorkloadMatcher", "log requests of workloads", true)...)
	add := func(flag, path, usage string, c codec) {
		f.Fields = append(f.Fields, Field{Flag: flag, Path: path, Usage: usage, codec: c})
	}
	add("filter", "filters", "log only requests that match: status=N, status>=N, status<=N or header.NAME=VALUE; of several, any one", each("condition", parseFilter, formatFilter))
	add("request-header", "includedRequestHeaders", "log these request headers, too", words("name"))
	add("response-header", "includedResponseHeaders", "log these response headers, too", words("name"))
	add("response-trailer", "includedResponseTrailers", "log these response trailers, too", words("name"))
	return f
}

// comparators of the status of a response, as they are written; the longer ones first.
var comparators = [][2]string{{">=", "GE"}, {"<=", "LE"}, {"=", "EQ"}}

// parseFilter reads status>=500, or header.NAME=VALUE.
func parseFilter(s string) (any, error) {
	if rest, ok := strings.CutPrefix(s, "status"); ok {
		for _, c := range comparators {
			if value, ok := strings.CutPrefix(rest, c[0]); ok {
				n, err := parseNumber(value)
				return map[string]any{"statusCodeMatcher": map[string]any{"value": n, "comparator": c[1]}}, err
			}
		}
	}
	if rest, ok := strings.CutPrefix(s, "header."); ok {
		if name, value, ok := strings.Cut(rest, "="); ok && name != "" {
			return map[string]any{"headerMatcher": map[string]any{"name": name, "value": value}}, nil
		}
	}
	return nil, fmt.Errorf("%q: must be status=N, status>=N, status<=N or header.NAME=VALUE, such as status>=500", s)
}

// formatFilter may be incomplete: AnswersFor compares what comes back.
func formatFilter(v any) (string, bool) {
	m, _ := v.(map[string]any)
	if status, ok := m["statusCodeMatcher"].(map[string]any); ok {
		value, isNumber := formatNumber(status["value"])
		for _, c := range comparators {
			if status["comparator"] == c[1] {
				return "status" + c[0] + value, isNumber
			}
		}
		return "", false
	}
	header, _ := m["headerMatcher"].(map[string]any)
	name, hasName := header["name"].(string)
	value, hasValue := header["value"].(string)
	return "header." + name + "=" + value, hasName && hasValue && !strings.Contains(name, "=")
}
