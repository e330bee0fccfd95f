package snapshot

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// PastProxyText says which ports of endpoints of a service pass their proxies by, or may, and what that means; empty if none does.
func PastProxyText(service *discoveryv1.KubeService) string {
	text := pastProxyText(service, discoveryv1.PastProxyExcluded, "pass", "by: no policy holds there, and callers that come with mutual TLS, as those of other clusters, do not reach it")
	return Sentences(text, pastProxyText(service, discoveryv1.PastProxyUncaptured, "may pass", "by, whose interception mode is NONE: whether a policy holds there is not known"))
}

// pastProxyText says it of the ports of which connections pass in one way.
func pastProxyText(service *discoveryv1.KubeService, how, pass, by string) string {
	var ports []uint32
	n := 0
	for i := range service.EndpointSubsets {
		part := &service.EndpointSubsets[i]
		past := false
		for _, p := range part.Ports {
			if p.PastProxy != how {
				continue
			}
			past = true
			if !slices.Contains(ports, p.Port) {
				ports = append(ports, p.Port)
			}
		}
		if past {
			n += len(part.Endpoints)
		}
	}
	if n == 0 {
		return ""
	}
	slices.Sort(ports)
	const few = 3
	names := make([]string, min(len(ports), few))
	for i := range names {
		names[i] = fmt.Sprint(ports[i])
	}
	what := "port " + names[0]
	if len(ports) > 1 {
		what = "ports " + strings.Join(names, ", ")
	}
	if more := len(ports) - few; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	all, _ := EndpointCounts(service)
	whose := fmt.Sprintf("%d of %d endpoints", n, all)
	if n == all {
		whose = Count(n, "endpoint")
	}
	if len(ports) == 1 && pass == "pass" {
		pass = "passes"
	}
	return what + " of " + whose + " " + pass + " the proxy " + by
}
