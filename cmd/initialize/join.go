package initialize

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/load"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// join looks what the clusters have, joins meshes, and makes a first policy.
func (r *run) join(ctx context.Context) error {
	in, err := r.Flags.Look(ctx, r.Streams, r.management())
	if err != nil {
		return err
	}
	world := wizards.NewWorld(in, r.Now())
	r.tell(world)
	if len(world.Plan.Meshes) == 0 {
		r.say("No mesh was found, so there is nothing to join. Install Istio or Open Service Mesh, then run `meshctl init` again.")
		return nil
	}
	if !r.NoVirtualMesh {
		changed, err := r.virtualMesh(ctx, in, world)
		if err != nil {
			return err
		}
		if changed {
			if in, err = r.Flags.Look(ctx, r.Streams, r.management()); err != nil {
				return err
			}
		}
	}
	if r.NoPolicy {
		return nil
	}
	return r.policy(ctx, in)
}

// management is what to read.
func (r *run) management() load.Management {
	return load.Management{Config: r.config, Namespace: r.MgmtNamespace, Version: r.factory.Version.Version}
}

// tell says what was found.
func (r *run) tell(world *wizards.World) {
	for _, found := range world.Found() {
		r.say("%s", found)
	}
}

// virtualMesh joins meshes; false if nothing was written.
func (r *run) virtualMesh(ctx context.Context, in *snapshot.Input, world *wizards.World) (bool, error) {
	p := r.kept.VirtualMesh
	if p == nil {
		p = &part{Kind: "virtualmesh", Name: r.MeshName, Answers: r.VirtualMesh}
	}
	free, joined := world.Free()
	switch {
	case p.Done:
		return false, nil
	case r.asks && len(free) == 0:
		r.say("%s", joined)
		return false, nil
	case r.AllMeshes:
		if len(free) == 0 {
			r.say("%s", joined)
			return false, nil
		}
		p.Answers["mesh"] = free
	case len(p.Answers["mesh"]) > 0:
	default:
		if joined != "" {
			r.say("%s", joined)
		}
		yes, err := r.fleet.Agree("Join meshes into a VirtualMesh?")
		if err != nil || !yes {
			return false, err
		}
	}
	if p.Name == "" && !r.asks {
		p.Name = "virtual-mesh"
	}
	r.kept.VirtualMesh = p
	return r.make(ctx, in, p)
}

// make makes one object.
func (r *run) make(ctx context.Context, in *snapshot.Input, p *part) (bool, error) {
	o, err := r.object(p)
	if err != nil {
		return false, err
	}
	command, err := o.Run(ctx, in)
	p.Name, p.Answers, p.Done = o.Name, o.Answers, err == nil
	if command != nil {
		r.commands = append(r.commands, command)
	}
	return err == nil && !r.DryRun, err
}

// policy makes a first policy.
func (r *run) policy(ctx context.Context, in *snapshot.Input) error {
	p := r.kept.Policy
	switch {
	case p != nil && p.Done:
		return nil
	case p != nil:
	case !r.asks:
		return nil
	default:
		kind, err := r.askKind(in.Management)
		if err != nil || kind == "" {
			return err
		}
		p = &part{Kind: kind, Answers: wizards.Answers{}}
	}
	r.kept.Policy = p
	_, err := r.make(ctx, in, p)
	return err
}

func (r *run) askKind(m *snapshot.Management) (string, error) {
	preset := "trafficpolicy"
	question := "Create a first policy?"
	if n := len(m.TrafficPolicies) + len(m.AccessPolicies); n > 0 {
		preset, question = "", fmt.Sprintf("Found %s. Create another one?", snapshot.Count(n, "policy"))
	}
	return r.fleet.Select(wizards.Question{Text: question}, []wizards.Option{
		{Value: "trafficpolicy", Text: "control how requests to services are handled (TrafficPolicy)"},
		{Value: "accesspolicy", Text: "control who may call services (AccessPolicy)"},
		{Value: "", Text: "not now"},
	}, preset)
}

// readPolicy reads the file of --policy.
func (r *run) readPolicy() (*part, error) {
	data, err := os.ReadFile(r.Policy)
	if err != nil {
		return nil, cmdutil.NotFoundErrorf("--policy: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &object.Object); err != nil {
		return nil, cmdutil.FlagErrorf("--policy %s: %w", r.Policy, err)
	}
	p := &part{Kind: strings.ToLower(object.GetKind()), Name: object.GetName()}
	form := wizards.FormOf(p.Kind)
	if form == nil || p.Kind == "virtualmesh" {
		return nil, cmdutil.FlagErrorf("--policy %s: must be a TrafficPolicy or an AccessPolicy, not a %s", r.Policy, object.GetKind())
	}
	spec, _ := object.Object["spec"].(map[string]any)
	if p.Answers, err = form.AnswersFor(spec); err != nil {
		return nil, fmt.Errorf("--policy %s: %w", r.Policy, err)
	}
	return p, nil
}
