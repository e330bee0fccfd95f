package initialize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// askMembers asks which clusters to register, and returns those that can be.
func (r *run) askMembers(ctx context.Context) ([]registration.Options, error) {
	r.commands = nil
	if len(r.Register) > 0 {
		r.saved.Clusters[wizards.RegisterFlag] = r.Register
	}
	if r.NoRegister {
		r.saved.Clusters[wizards.RegisterFlag] = []string{}
	}
	members, err := r.clusters.Members(r.mgmt)
	if err != nil {
		return nil, err
	}
	options, err := r.registrations(members)
	if err != nil {
		return nil, err
	}
	if r.asks {
		options = r.unregistered(members, options)
	}
	if options, err = r.checkRegistrations(ctx, options); err != nil || len(options) == 0 {
		return nil, err
	}
	if r.DryRun {
		r.say("Would register: %s. Their meshes are discovered after that.", names(options))
		return nil, nil
	}
	if r.asks && !r.Apply {
		yes, err := r.clusters.Confirm(fmt.Sprintf("Register %s now? This creates a ServiceAccount for meshctl on each cluster, and stores its credential in %s.", names(options), r.mgmt.Name))
		if err != nil {
			return nil, err
		}
		if !yes {
			r.say("No cluster was registered.")
			return nil, nil
		}
	}
	return options, nil
}

// unregistered leaves out clusters that are already registered. (Their commands
// are printed, and repair a broken registration.)
func (r *run) unregistered(members []wizards.Member, options []registration.Options) []registration.Options {
	var out []registration.Options
	for i := range options {
		if members[i].Registered {
			r.say("Already registered: %s", options[i].Name)
			r.commands = append(r.commands, r.command(&options[i]))
			continue
		}
		out = append(out, options[i])
	}
	return out
}

func names(options []registration.Options) string {
	var out []string
	for i := range options {
		out = append(out, options[i].Name)
	}
	return strings.Join(out, ", ")
}

func (r *run) registrations(members []wizards.Member) ([]registration.Options, error) {
	var out []registration.Options
	for _, m := range members {
		remote, err := r.factory.Config(r.Kubeconfig, m.Context)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", m.Name, err)
		}
		out = append(out, registration.Options{
			Name: m.Name, RemoteConfig: remote, MgmtConfig: r.config, RemoteContext: m.Context, MgmtContext: r.mgmt.Name, MgmtNamespace: r.MgmtNamespace,
			Agent: agent.Account(""), KeepCredential: true, ServeWait: registration.DefaultRegisterWait,
		})
	}
	return out, nil
}

// checkRegistrations returns the registrations that can succeed. All are checked
// before anything is written.
func (r *run) checkRegistrations(ctx context.Context, options []registration.Options) ([]registration.Options, error) {
	for len(options) > 0 {
		progress := r.Flags.Progress(r.Streams)
		progress.Start("Checking that clusters can be registered; nothing is written yet")
		var errs []error
		var bad []string
		for i := range options {
			progress.Note("%s", options[i].Name)
			if _, err := registration.Check(ctx, options[i]); err != nil {
				errs, bad = append(errs, fmt.Errorf("%s: %w", options[i].Name, err)), append(bad, options[i].Name)
			}
		}
		err := errors.Join(errs...)
		progress.End(err)
		switch {
		case err == nil:
			return options, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !r.asks:
			return nil, err
		}
		choice, err := r.clusters.Retry(errors.New(kube.Text(err)), wizards.Option{Value: "without", Text: "continue without " + strings.Join(bad, ", ")})
		switch {
		case err != nil:
			return nil, err
		case choice == "stop":
			return nil, errStopped
		case choice == "without":
			options = slices.DeleteFunc(options, func(o registration.Options) bool { return slices.Contains(bad, o.Name) })
		}
	}
	return nil, nil
}

// register registers clusters one after the other, and returns how many are
// registered then.
func (r *run) register(ctx context.Context, options []registration.Options) (int, error) {
	progress := r.Flags.Progress(r.Streams)
	if r.mgmt.Members == nil {
		r.mgmt.Members = map[string]string{}
	}
	var notes []string
	for i := range options {
		o := &options[i]
		progress.Start("Registering " + o.Name)
		o.Progress = func(text string) { progress.Note("%s", text) }
		report, err := registration.Register(ctx, *o)
		if err != nil {
			progress.End(err)
			return 0, err
		}
		if report.Unchanged() {
			progress.Note("already registered; nothing changed")
		}
		if report.Serve == registration.ServeReaches {
			progress.Note("meshctl serve reaches it")
		}
		notes = append(notes, report.Notes...)
		if _, known := r.mgmt.Members[o.Name]; !known {
			r.mgmt.Members[o.Name] = "" // the UID is needed for questions only, and none follow
		}
		r.commands = append(r.commands, r.command(o))
	}
	progress.End(nil)
	for _, note := range notes {
		r.say("Note: %s.", note)
	}
	return len(r.mgmt.Members), nil
}

// command is the equivalent `meshctl cluster register`.
func (r *run) command(o *registration.Options) []string {
	words := []string{"meshctl", "cluster", "register", o.Name, "--remote-context", o.RemoteContext}
	if r.Kubeconfig != "" {
		words = append(words, "--kubeconfig", r.Kubeconfig)
	}
	words = append(words, "--mgmt-context", o.MgmtContext)
	if r.MgmtNamespace != snapshot.DefaultNamespace {
		words = append(words, "--mgmt-namespace", r.MgmtNamespace)
	}
	return words
}
