package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// pollInterval is between two looks at the rollouts.
const pollInterval = time.Second

// roll restarts the plan, and waits until all is complete. What was restarted is printed in any case.
func (o *RestartOptions) roll(ctx context.Context, roller *restart.Roller, plan restart.Plan) error {
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start(fmt.Sprintf("Restarting %d controllers", len(plan.Controllers)))
	rows := []Controller{}
	var last restart.Progress
	err := roller.Adopt(ctx, plan)
	if err != nil {
		progress.End(err)
		return fmt.Errorf("mesh %s: %w", o.Mesh, err)
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		step, err := roller.Step(ctx, plan)
		for _, why := range step.Stuck[min(len(last.Stuck), len(step.Stuck)):] {
			progress.Note("%s; others in its namespace wait", why)
		}
		last = step
		for _, c := range step.Restarted {
			rows = append(rows, Controller{classes[c.Class], c.Kind, c.Namespace, c.Name, len(c.Pods)})
			progress.Note("%s restarts (left: %d)", c.String(), step.Pending)
		}
		if why := step.Stalled(); err == nil && why != "" {
			err = errors.New(why)
		}
		return step.Done(), err
	})
	progress.End(err)
	for _, u := range last.Untouched {
		o.say("Note: %s (pods: %d) is not restarted: %s.", u.Owner, u.Pods, u.Reason)
	}
	if printErr := o.printRestarted(rows); err == nil {
		err = printErr
	}
	switch {
	case ctx.Err() != nil:
		o.say("Interrupted. Restarted: %d, of which some may still roll; left: %d. Run the command again to go on.", len(rows), last.Pending)
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("mesh %s: %w (restarted: %d, left: %d)", o.Mesh, err, len(rows), last.Pending)
	case len(rows) == 0:
		o.say("All has been restarted for what is in the Secret %s; set --force to restart it again.", cacerts)
	default:
		o.say("Restarted: %d.", len(rows))
	}
	return nil
}

func (o *RestartOptions) printRestarted(rows []Controller) error {
	return o.Output.Print(o.Streams.Out, rows, func(out io.Writer) error {
		for _, r := range rows {
			if _, err := fmt.Fprintf(out, "restarted %s %s/%s\n", r.Kind, r.Namespace, r.Name); err != nil {
				return err
			}
		}
		return nil
	})
}
