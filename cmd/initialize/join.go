package initialize

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// join reads the clusters, joins meshes, and creates a first policy.
func (r *run) join(ctx context.Context) error {
	in, err := r.Flags.ReadClusters(ctx, r.Streams, r.management())
	if err != nil {
		return err
	}
	catalog := wizards.NewCatalog(in, r.Now())
	r.reportDiscovered(catalog)
	if len(catalog.Plan.Meshes) == 0 {
		r.say("No mesh was found, so there is nothing to join. Install Istio or Open Service Mesh, then run `meshctl init` again.")
		return nil
	}
	if !r.NoVirtualMesh {
		changed, err := r.virtualMesh(ctx, in, catalog)
		if err != nil {
			return err
		}
		if changed {
			if in, err = r.Flags.ReadClusters(ctx, r.Streams, r.management()); err != nil {
				return err
			}
		}
	}
	if r.NoPolicy {
		return nil
	}
	return r.policy(ctx, in)
}

// management is the management cluster to read.
func (r *run) management() reading.Management {
	return reading.Management{Config: r.config, Namespace: r.MgmtNamespace, Version: r.factory.Version.Version,
		Detours: cmdutil.Detours(r.factory, r.Kubeconfig)}
}

// reportDiscovered prints what was discovered in each cluster.
func (r *run) reportDiscovered(catalog *wizards.Catalog) {
	for _, line := range catalog.Discovered() {
		r.say("%s", line)
	}
}

// virtualMesh joins meshes; false if nothing was written.
func (r *run) virtualMesh(ctx context.Context, in *snapshot.Input, catalog *wizards.Catalog) (bool, error) {
	p := r.saved.VirtualMesh
	if p == nil {
		p = &objectAnswers{Kind: "virtualmesh", Name: r.MeshName, Answers: r.VirtualMesh}
	}
	unjoined, joined := catalog.UnjoinedMeshes()
	given := len(p.Answers["mesh"]) > 0
	switch {
	case p.Done:
		return false, nil
	case (r.asks || r.AllMeshes) && len(unjoined) == 0:
		r.say("%s", joined)
		return false, nil
	case r.AllMeshes:
		p.Answers["mesh"] = unjoined
		given = true
	case !given && joined != "":
		r.say("%s", joined)
	}
	if p.Name == "" && !r.asks {
		p.Name = "virtual-mesh"
	}
	var changed bool
	err := r.clusters.Ask(func() (err error) {
		r.clusters.Enter(virtualMeshSection)
		yes := given
		if !yes {
			yes, err = r.clusters.Confirm("Join meshes into a VirtualMesh?")
		}
		if err != nil || !yes {
			return err
		}
		r.saved.VirtualMesh = p
		changed, err = r.create(ctx, in, p, virtualMeshSection)
		return err
	})
	return changed, err
}

// create asks for and creates one object.
func (r *run) create(ctx context.Context, in *snapshot.Input, p *objectAnswers, section string) (bool, error) {
	o, err := r.createOptions(p, section)
	if err != nil {
		return false, err
	}
	command, err := o.Run(ctx, in)
	p.Name, p.Answers, p.Done = o.Name, o.Answers, err == nil
	r.finding = cmp.Or(r.finding, o.Finding)
	if command != nil {
		r.commands = append(r.commands, command)
	}
	return err == nil && !r.DryRun, err
}

// policy creates a first policy.
func (r *run) policy(ctx context.Context, in *snapshot.Input) error {
	p := r.saved.Policy
	if p != nil && p.Done || p == nil && !r.asks {
		return nil
	}
	return r.clusters.Ask(func() error {
		r.clusters.Enter(policySection)
		if p == nil {
			kind, err := r.askKind(in.Management)
			if err != nil || kind == "" {
				return err
			}
			r.saved.Policy = &objectAnswers{Kind: kind, Answers: wizards.Answers{}}
		}
		_, err := r.create(ctx, in, r.saved.Policy, policySection)
		return err
	})
}

func (r *run) askKind(m *snapshot.Management) (string, error) {
	preset := "trafficpolicy"
	question := "Create a first policy?"
	if n := len(m.TrafficPolicies) + len(m.AccessPolicies); n > 0 {
		preset, question = "", fmt.Sprintf("Found %s. Create another one?", snapshot.Count(n, "policy"))
	}
	return r.clusters.Select(wizards.Question{Text: question}, []wizards.Option{
		{Value: "trafficpolicy", Text: "control how requests to services are handled (TrafficPolicy)"},
		{Value: "accesspolicy", Text: "control who may call services (AccessPolicy)"},
		{Value: "", Text: "not now"},
	}, preset)
}

// readPolicy reads the file of --policy.
func (r *run) readPolicy() (*objectAnswers, error) {
	data, err := offline.ReadFile(r.Policy)
	if err != nil {
		return nil, cmdutil.NotFoundErrorf("--policy: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &object.Object); err != nil {
		return nil, cmdutil.FlagErrorf("--policy %s: %w", r.Policy, err)
	}
	p := &objectAnswers{Kind: strings.ToLower(object.GetKind()), Name: object.GetName()}
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
