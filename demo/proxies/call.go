package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/meshctl/meshctl/demo/app"
)

// Send sends requests as a pod, and passes the outcomes of each interval to report.
// When ctx ends, it stops without an error.
func (p *Plane) Send(ctx context.Context, from Pod, call app.Call, report func([]app.Outcome)) error {
	response, err := p.send(ctx, http.MethodPost, "pods/"+from.UID+"/app/call", call)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines, sent := json.NewDecoder(response.Body), 0
	for {
		var line app.Report
		err := lines.Decode(&line)
		switch {
		case ctx.Err() != nil || errors.Is(err, io.EOF) && call.Count > 0 && sent == call.Count:
			return nil
		case err != nil:
			return fmt.Errorf("proxies: pod %s ended while it sent requests: %w", from.Pod, err)
		}
		for _, o := range line.Groups {
			sent += len(o.Micros)
		}
		report(line.Groups)
	}
}
