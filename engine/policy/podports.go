package policy

import (
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// podPortIssues warn the author of an AccessPolicy with ports that pods of a service listen on different ones for one of these: it
// holds for all pods alike.
func podPortIssues(rule *snapshot.AccessRule, d *discoveryv1.Destination) []snapshot.Issue {
	service := d.Spec.KubeService
	var issues []snapshot.Issue
	for _, port := range rule.Ports {
		at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port })
		if at < 0 {
			continue
		}
		var open, closed []string
		var by uint32
		for _, number := range snapshot.PodNumbers(service, service.Ports[at]) {
			text := strconv.FormatUint(uint64(number), 10)
			if other := snapshot.TakenBy(service, service.Ports[at], number, rule.Ports); other != 0 {
				closed, by = append(closed, text), other
			} else {
				open = append(open, text)
			}
		}
		name := inventory.ServiceName(service.Ref)
		switch {
		case len(closed) > 0:
			issues = append(issues, snapshot.Warnf(snapshot.PortsDiffer, "have all pods of the Service listen on one port for each of its ports, or allow both ports",
				"port %d of service %s stays closed on pods that listen for it on %s: others listen there for port %d, which is not allowed", port, name, strings.Join(closed, " and "), by).At("allowedPorts"))
		case len(open) > 1:
			issues = append(issues, snapshot.Warnf(snapshot.PortsDiffer, "have all pods of the Service listen on one port for each of its ports",
				"pods of service %s listen for port %d on %s: each of these is open on all of them", name, port, strings.Join(open, " and ")).At("allowedPorts"))
		}
	}
	return issues
}
