package trust

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/kube"
)

// pollInterval is between two looks at the VirtualMesh.
const pollInterval = time.Second

// waiter follows the trust of a VirtualMesh.
type waiter struct {
	*decision
	// last is what was said last.
	last string
	// left: the root from which it goes has stopped being the one that signs.
	left bool
}

// wait follows the stages until the trust is established with the root that was decided.
func (o *Options) wait(ctx context.Context, d *decision) error {
	within := ctx
	if o.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		within = limited
	}
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Waiting for " + o.ref.Namespace + "/" + o.ref.Name)
	w := &waiter{decision: d}
	err := wait.PollUntilContextCancel(within, pollInterval, true, func(ctx context.Context) (bool, error) {
		vm, err := o.get(ctx)
		switch {
		case cmdutil.ExitCode(err) == cmdutil.ExitNotFound:
			return false, err
		case err != nil && ctx.Err() == nil:
			w.note(progress, kube.Text(err)) // the API server may be back soon
		case err == nil:
			done, text, err := w.look(vm)
			w.note(progress, text)
			return done, err
		}
		return false, nil
	})
	progress.End(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		o.say("Interrupted. What was asked for goes on; to see how far it is: meshctl trust show %s\n", o.ref.Name)
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("VirtualMesh %s/%s: not complete within %s (%s); it goes on, and what it waits for is shown by: meshctl trust show %s",
			o.ref.Namespace, o.ref.Name, o.Timeout, w.last, o.ref.Name)
	}
	return err
}

// note says what has changed.
func (w *waiter) note(progress *cmdutil.Progress, text string) {
	if text != w.last {
		w.last = text
		progress.Note("%s", text)
	}
}

// look says where the trust stands, and whether that is the end.
func (w *waiter) look(vm *networkingv1.VirtualMesh) (done bool, text string, err error) {
	trust := vm.Status.Trust
	if trust == nil {
		return false, "no server has written where the trust stands", nil
	}
	text = string(trust.Stage) + prefixed(": ", trust.Message)
	if trust.Paused || paused(vm) {
		text += " (paused; to go on: meshctl trust resume " + vm.Name + ")"
	}
	arrived := trust.Root != "" && (trust.Root == w.to || w.to == "" && trust.Root != w.from)
	switch {
	case arrived:
		w.left = true
	case w.left:
		return false, text, refuse(vm, "root %s signs now, not the root that was waited for; see: meshctl trust show %s", digits(trust.Root), vm.Name)
	default:
		text = "waiting for meshctl serve" + prefixed(": ", text)
	}
	return arrived && trust.Stage == networkingv1.TrustEstablished, text, nil
}
