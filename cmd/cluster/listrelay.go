package cluster

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// relayTable lists clusters of which at least one is reached through its agent.
func relayTable(found []registration.ClusterStatus, now time.Time) *cmdutil.Table {
	table := &cmdutil.Table{Header: []string{"NAME", "VIA", "STATE", "SINCE", "LAG-UP", "LAG-DOWN", "OBJECTS", "AGENT", "CERTIFICATE", "MESHES", "PROBLEM"}}
	for i := range found {
		table.Add(relayRow(&found[i], now)...)
	}
	return table
}

// relayRow is one cluster: of one that is dialled, STATE is its health and CERTIFICATE the life of its credential.
func relayRow(status *registration.ClusterStatus, now time.Time) []string {
	c := status.Connection
	if c == nil {
		via := strings.ToLower(string(multiclusterv1alpha1.ViaDirect))
		switch {
		case status.Health == snapshot.HealthPending:
			via = strings.ToLower(string(multiclusterv1alpha1.ViaRelay))
		case !status.Health.Registered():
			via = ""
		}
		expires := ""
		if status.Expires != nil {
			expires = left(*status.Expires, now)
		}
		return []string{status.Name, via, string(status.Health), ageAt(status.Since, now), "", "", "", "", expires, meshNames(status), status.Reason}
	}
	certificate, objects := "", ""
	if c.CertificateExpires != nil {
		certificate = left(c.CertificateExpires.Time, now)
	}
	if c.Objects > 0 {
		objects = strconv.FormatInt(c.Objects, 10)
	}
	state, since := strings.ToLower(string(c.State)), ageOf(c.Since, now)
	if status.Health == snapshot.HealthLeaving {
		state, since = string(status.Health), ageAt(status.Since, now)
	}
	return []string{
		status.Name, strings.ToLower(string(c.Via)), state, since, lag(c, c.UpBehindSince, now), lag(c, c.DownBehindSince, now),
		objects, c.AgentVersion, certificate, meshNames(status), status.Reason,
	}
}

// left is how long something lasts.
func left(end, now time.Time) string {
	if !end.After(now) {
		return "expired"
	}
	return duration.HumanDuration(end.Sub(now))
}

func ageOf(t *metav1.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0))
}

// lag is for how long one side lacks something, as far as that is stored; empty without a connection.
func lag(c *multiclusterv1alpha1.Connection, since *metav1.Time, now time.Time) string {
	switch c.State {
	case multiclusterv1alpha1.ConnectionStateAwaited, multiclusterv1alpha1.ConnectionStateRefused, multiclusterv1alpha1.ConnectionStateLost:
		return ""
	case multiclusterv1alpha1.ConnectionStateResync, multiclusterv1alpha1.ConnectionStateStuck, multiclusterv1alpha1.ConnectionStateConnected:
	}
	if since == nil {
		return "<" + duration.HumanDuration(snapshot.RelayLag)
	}
	return ageOf(since, now)
}
