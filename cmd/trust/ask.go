package trust

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/wizards"
)

// plan says what a rotation does, step by step.
func plan(vm *networkingv1.VirtualMesh, would *decision) string {
	var b strings.Builder
	if would.underWay {
		fmt.Fprintf(&b, "%s: the rotation goes on without %s.\n", name(vm), strings.Join(would.leftOut, ", "))
		return b.String() + lost
	}
	root := "its root"
	if trust := vm.Status.Trust; trust != nil && trust.Root != "" {
		root = "root " + digits(trust.Root)
		for _, r := range trust.Roots {
			if r.Fingerprint == trust.Root && r.NotAfter != nil {
				root += " (expires at " + r.NotAfter.UTC().Format(time.RFC3339) + ")"
			}
		}
	}
	fmt.Fprintf(&b, "%s: %s is exchanged for a new one in these meshes:\n", name(vm), root)
	for _, m := range vm.Spec.Meshes {
		fmt.Fprintf(&b, "  %s/%s\n", m.Namespace, m.Name)
	}
	who, limited := "workloads", vm.Spec.MtlsConfig.Limited != nil
	if limited {
		who = "gateways"
	}
	fmt.Fprintf(&b, `Each step waits until all members have done the one before:
  1. A new root is made, and all %s trust both (DISTRIBUTING).
  2. All members get certificates of the new root, and present them (ISSUING).
  3. All stop trusting the old root, and its key is deleted (RETIRING, ESTABLISHED).
`, who)
	fmt.Fprintf(&b, "Until its key is deleted, this can be undone: meshctl trust rollback %s\n", vm.Name)
	switch {
	case limited:
		b.WriteString("No pod has to restart: gateways load certificates while they run.\n")
	case vm.Spec.MtlsConfig.AutoRestartPods:
		b.WriteString("Control planes, gateways and workloads that take up roots or certificates only when they start are restarted (autoRestartPods).\n")
	default:
		b.WriteString("No pod is restarted. Where pods must restart, the rotation waits until you run: meshctl mesh restart MESH\n")
	}
	if len(would.leftOut) > 0 {
		fmt.Fprintf(&b, "It does not wait for %s.\n%s", strings.Join(would.leftOut, ", "), lost)
	} else if !limited {
		b.WriteString("A namespace whose workloads do not follow in time is left out, and named: meshctl trust show " + vm.Name + "\n")
	}
	return b.String()
}

// lost says what becomes of namespaces that are left out.
const lost = "Workloads there that do not trust the new root when it is used, or present the old one when it is gone, lose their connections until they restart.\n"

// agree shows what would be done and asks. No is the answer that return gives.
func (o *Options) agree(ctx context.Context, vm *networkingv1.VirtualMesh, would *decision) (bool, error) {
	o.say("%s", o.action.plan(vm, would))
	prompter := o.Prompter
	if prompter == nil {
		prompter = o.Flags.Prompter(ctx, o.Streams)
	}
	text := o.action.question
	if would.underWay {
		text = "Leave them out of the rotation of %s?"
	}
	question := wizards.Question{Text: fmt.Sprintf(text, cmdutil.Clean(name(vm)))}
	answer, err := prompter.Select(question, []wizards.Option{{Value: "no"}, {Value: "yes"}}, "no")
	if err != nil {
		return false, interview.ExitError(err)
	}
	if answer != "yes" {
		o.say("Nothing was changed.\n")
	}
	return answer == "yes", nil
}
