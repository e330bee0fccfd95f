package explain

import (
	"cmp"
	"fmt"

	"github.com/meshctl/meshctl/engine/traffic"
)

// addDoors says of each cluster through which door the numbers come in, and what is lost on the way. Nothing that matters to requests
// depends on it, so that nothing here fails.
func addDoors(c *CheckCategory, clusters []traffic.ClusterReport) {
	for i := range clusters {
		r := &clusters[i]
		id, description := "telemetry/"+r.Cluster, r.Cluster+": proxies are read"
		if r.Door == traffic.Off {
			c.ok(id, description, "not here: its KubernetesCluster says so")
			continue
		}
		message := fmt.Sprintf("%d of %d, door %s", r.Read, r.Proxies, r.Door)
		lost := lostText(r)
		if r.Refused > 0 {
			c.info("telemetry/"+r.Cluster+"/refused", r.Cluster+": proxies that send by themselves are taken", refusedText(r),
				"the proxies of a pod send its own numbers and logs with its own certificate; look at the pod, and at the log of the agent")
		}
		if r.Read == r.Proxies && r.Reason == "" {
			if lost != "" {
				message += "; " + lost
			}
			c.ok(id, description, message)
			continue
		}
		if r.Reason != "" {
			message += ": " + cmp.Or(r.Detail, r.Reason.String())
		}
		if lost != "" {
			message += "; " + lost
		}
		c.info(id, description, message, "see `meshctl telemetry enable --help`")
	}
}
