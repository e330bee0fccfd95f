package relay

import (
	"encoding/json"

	"github.com/meshctl/meshctl/engine/accesslog"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of what an agent sends of access logs: of one entry, in bytes, and of the entries in one frame.
const (
	maxEntry   = 192 << 10
	maxEntries = 64
)

// LoggedOf is what an agent says of the log of a proxy, as it is sent. An entry that is too large is left out.
func LoggedOf(s *telemetry.SentLogs) *relayv1.Logged {
	out := &relayv1.Logged{Pod: &relayv1.Name{Namespace: s.Proxy.Namespace, Name: s.Proxy.Pod}, Created: s.Proxy.Created, Open: s.Open, Dropped: s.Dropped}
	for _, e := range s.Entries {
		if text, err := json.Marshal(e); err == nil && len(text) <= maxEntry {
			out.Entries = append(out.Entries, text)
		}
	}
	return out
}

// SentLogsOf is what came from an agent. Its cluster is not set: it is that of the agent. What is no entry is left out.
func SentLogsOf(l *relayv1.Logged) *telemetry.SentLogs {
	out := &telemetry.SentLogs{
		Proxy: traffic.Proxy{Namespace: l.GetPod().GetNamespace(), Pod: l.GetPod().GetName(), Created: l.GetCreated()},
		Open:  l.GetOpen(), Dropped: l.GetDropped(),
	}
	for _, text := range l.GetEntries()[:min(len(l.GetEntries()), maxEntries)] {
		e := &accesslog.Entry{}
		if len(text) <= maxEntry && json.Unmarshal(text, e) == nil {
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

// LogRecordsOf are AccessLogRecords as an agent is told of them.
func LogRecordsOf(records []telemetry.LogRecord) []*relayv1.LogRecord {
	var out []*relayv1.LogRecord
	for _, r := range records {
		if text, err := json.Marshal(r.Spec); err == nil {
			out = append(out, &relayv1.LogRecord{Name: &relayv1.Name{Name: r.Name}, Spec: text})
		}
	}
	return out
}

// WantedLogsOf are AccessLogRecords of which the hub told. What is none is left out.
func WantedLogsOf(records []*relayv1.LogRecord) []telemetry.LogRecord {
	var out []telemetry.LogRecord
	for _, r := range records[:min(len(records), accesslog.MaxRecords)] {
		spec := &observabilityv1.AccessLogRecordSpec{}
		if json.Unmarshal(r.GetSpec(), spec) == nil {
			out = append(out, telemetry.LogRecord{Name: r.GetName().GetName(), Spec: spec})
		}
	}
	return out
}
