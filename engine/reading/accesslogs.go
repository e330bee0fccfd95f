package reading

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// AccessLogs asks the meshctl serve that leads for requests that proxies logged, as Traffic does for what they count.
func (m Management) AccessLogs(ctx context.Context, q *accesslog.Query) (*accesslog.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	data, err := m.page(ctx, telemetry.LogsPath+"?"+q.Values().Encode())
	if err != nil {
		return nil, err
	}
	report := &accesslog.Report{}
	if err := json.Unmarshal(data, report); err != nil {
		return nil, fmt.Errorf("meshctl serve: its answer has no access logs: %w; check that its version is the one of this meshctl", err)
	}
	return report, nil
}
