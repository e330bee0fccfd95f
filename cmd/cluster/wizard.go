package cluster

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/wizards"
)

// registerKind marks answers that `cluster register` has kept.
const registerKind = "register"

// kept are the answers of a run that did not come to its end.
type kept struct {
	Kind    string          `json:"kind"`
	Answers wizards.Answers `json:"answers"`
}

// errStopped ends a run when the user decides so.
var errStopped = errors.New("stopped")

// ask asks for what the flags leave out, checks that the registration can work,
// and registers the cluster.
func (o *RegisterOptions) ask(ctx context.Context) error {
	answers := wizards.Answers{}
	if o.Flags.Recover != "" {
		var k kept
		if err := o.Flags.LoadAnswers(&k); err != nil {
			return err
		}
		if k.Kind != registerKind {
			return cmdutil.FlagErrorf("%s has no answers for `meshctl cluster register`", o.Flags.Recover)
		}
		answers = k.Answers
	}
	err := o.askAll(ctx, answers)
	switch {
	case errors.Is(err, errStopped):
		say(o.Streams, "Nothing was written.")
		return nil
	case err != nil && len(answers) > 0:
		o.Flags.SaveAnswers(o.Streams, kept{Kind: registerKind, Answers: answers}, []string{"meshctl", "cluster", "register"})
	}
	return interview.ExitError(err)
}

func (o *RegisterOptions) askAll(ctx context.Context, answers wizards.Answers) error {
	contexts, err := o.Flags.Contexts(ctx, o.factory, o.kubeconfig, o.namespace)
	if err != nil {
		return err
	}
	if o.Prompter == nil {
		o.Prompter = o.Flags.Prompter(ctx, o.Streams)
	}
	clusters := &wizards.Clusters{
		Prompter: o.Prompter, Contexts: contexts, Answers: answers,
		Title: "Register a cluster", Sections: []string{managementSection, clusterSection, registerSection},
	}
	clusters.ReportProblems()
	name, remoteContext, mgmtContext := o.Name, o.RemoteContext, o.context
	err = clusters.Ask(func() error {
		o.context = mgmtContext
		return o.askCluster(ctx, clusters, name, remoteContext)
	})
	if err != nil {
		return err
	}
	if err := registerRun(ctx, o); err != nil {
		return err
	}
	say(o.Streams, "Equivalent command:")
	_, err = o.Streams.Err.Write([]byte("\n  " + wizards.Quote(o.command()) + "\n"))
	return err
}

// The sections of the questions.
const (
	managementSection = "Management cluster"
	clusterSection    = "Cluster"
	registerSection   = "Registration"
)

// other is the answer that another cluster than that of the flags is to be registered.
const other = "?other"

// askCluster asks for the cluster and its name, beside those of the flags, and whether to register it.
func (o *RegisterOptions) askCluster(ctx context.Context, clusters *wizards.Clusters, name, remoteContext string) error {
	clusters.Enter(managementSection)
	management, err := o.askManagement(ctx, clusters)
	if err != nil {
		return err
	}
	mgmt, err := o.config()
	if err != nil {
		return err
	}
	clusters.Enter(clusterSection)
	for {
		if _, chosen := clusters.Answers[other]; chosen {
			name, remoteContext = "", ""
		}
		member, err := clusters.SelectCluster(management, remoteContext, name)
		if err != nil {
			return err
		}
		o.Name, o.RemoteContext = member.Name, member.Context
		choice, err := o.check(ctx, clusters, mgmt)
		if err != nil {
			return err
		}
		switch choice {
		case "stop":
			return errStopped
		case "other":
			clusters.Reset()
			clusters.Answers[other] = []string{"true"}
			continue
		case "":
			clusters.Enter(registerSection)
			return o.agree(clusters, management)
		}
	}
}

// askManagement asks where the management plane is, unless flags say it.
func (o *RegisterOptions) askManagement(ctx context.Context, clusters *wizards.Clusters) (*wizards.Context, error) {
	if o.context != "" && o.mgmtKubeconfig == "" {
		clusters.Answers[wizards.ManagementFlag] = []string{o.context}
	}
	if o.mgmtKubeconfig == "" {
		management, err := clusters.Management()
		if err != nil {
			return nil, err
		}
		o.context = management.Name
		return management, nil
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	found, err := registration.Inspect(ctx, registration.InspectOptions{Config: config, Context: o.context, MgmtNamespace: o.namespace})
	if err != nil {
		return nil, typed(err)
	}
	return &wizards.Context{Name: o.context, Server: config.Host, Version: found.Version, UID: found.UID, Members: found.Members}, nil
}

// check makes sure that registering can work; empty if it can.
func (o *RegisterOptions) check(ctx context.Context, clusters *wizards.Clusters, mgmt *rest.Config) (string, error) {
	remote, err := o.remote(o.RemoteContext)
	if err != nil {
		return "", err
	}
	progress := o.Flags.Progress(o.Streams)
	progress.Start("Checking that " + o.Name + " can be registered; nothing is written yet")
	_, err = registration.Check(ctx, o.options(remote, mgmt))
	progress.End(err)
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	return clusters.Retry(errors.New(kube.Text(err)), wizards.Option{Value: "other", Text: "choose another cluster or name"})
}

// agree asks whether to register the cluster.
func (o *RegisterOptions) agree(clusters *wizards.Clusters, management *wizards.Context) error {
	yes, err := clusters.Confirm("Register " + o.Name + " now? This creates a ServiceAccount for meshctl on it, and stores its credential in " + management.Server + ".")
	if err == nil && !yes {
		return errStopped
	}
	return err
}

// command is the one that registers the cluster without questions.
func (o *RegisterOptions) command() []string {
	words := []string{"meshctl", "cluster", "register", o.Name, "--remote-context", o.RemoteContext}
	for _, flag := range [][3]string{
		{"--kubeconfig", o.kubeconfig}, {"--mgmt-kubeconfig", o.mgmtKubeconfig}, {"--mgmt-context", o.context},
		{"--mgmt-namespace", o.namespace, cluster.DefaultNamespace}, {"--remote-namespace", o.RemoteNamespace, ""},
		{"--cluster-domain", o.ClusterDomain, "cluster.local"}, {"--api-server-address", o.APIServerAddress},
		{"--agent-image", o.AgentImage}, {"--vault-server", strings.Join(o.VaultServers, ",")}, {"--vault-audience", o.VaultAudience},
		{"--vault-token-secret", strings.Join(o.VaultSecrets, ",")}, {"--vault-service-account", strings.Join(o.VaultAccounts, ",")},
	} {
		if flag[1] != flag[2] {
			words = append(words, flag[0], flag[1])
		}
	}
	if o.TokenTTL != 0 {
		words = append(words, "--token-ttl", o.TokenTTL.String())
	}
	return words
}
