package serve

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/certs/serving"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/webhook"
)

// Webhook is how the admission webhook is served; not at all if Bind is empty.
type Webhook struct {
	Bind, URL, Address string
	// Roles say what Roles do: off, warn or enforce.
	Roles         string
	FailurePolicy string
}

func (w *Webhook) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.Bind, "webhook-bind", "", "`address` of the admission webhook, such as :9443; empty disables it")
	flags.StringVar(&w.URL, "webhook-url", "", "`URL` by which API servers reach it where serve does not run in the cluster, such as https://host.example.com:9443 (default: the Service that \"meshctl install --webhook\" creates)")
	flags.StringVar(&w.Address, "webhook-address", "", "`IP` of this process, to which the Service is to lead, such as $(POD_IP)")
	flags.StringVar(&w.Roles, "roles", string(webhook.Off), "what Roles do: "+strings.Join(webhook.Modes(), ", "))
	flags.StringVar(&w.FailurePolicy, "webhook-failure-policy", "", "with --webhook-url, whether writes fail while Roles are enforced and serve does not answer: `Fail` or Ignore (default Fail)")
	_ = cmd.RegisterFlagCompletionFunc("roles", cobra.FixedCompletions(webhook.Modes(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("webhook-failure-policy", cobra.FixedCompletions(webhook.FailurePolicies(), cobra.ShellCompDirectiveNoFileComp))
}

// check says which flags do not go together.
func (w *Webhook) check() error {
	if !slices.Contains(webhook.Modes(), w.Roles) {
		return cmdutil.FlagErrorf("--roles %q: want one of %s", w.Roles, strings.Join(webhook.Modes(), ", "))
	}
	if w.Bind == "" {
		if w.Roles != string(webhook.Off) || w.URL != "" || w.Address != "" || w.FailurePolicy != "" {
			return cmdutil.FlagErrorf("--roles and --webhook-... need the admission webhook: give --webhook-bind, too")
		}
		return nil
	}
	if w.FailurePolicy != "" && w.URL == "" {
		return cmdutil.FlagErrorf("--webhook-failure-policy is for --webhook-url; in a cluster, set it with `meshctl install`")
	}
	if w.URL != "" {
		if w.Address != "" {
			return cmdutil.FlagErrorf("--webhook-url and --webhook-address exclude each other: leave one of them out")
		}
		if _, err := w.host(); err != nil {
			return err
		}
	}
	c := webhook.Configuration{Mode: webhook.Mode(w.Roles), FailurePolicy: w.FailurePolicy}
	if err := c.Check(); err != nil {
		return cmdutil.FlagErrorf("--webhook-failure-policy: %w", err)
	}
	return nil
}

// host is that of the URL.
func (w *Webhook) host() (string, error) {
	u, err := url.Parse(w.URL)
	if err == nil {
		_, ip := netip.ParseAddr(u.Hostname())
		if u.Scheme == "https" && u.Hostname() != "" && ip != nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.User == nil {
			return u.Hostname(), nil
		}
	}
	return "", cmdutil.FlagErrorf("--webhook-url %q: want https://NAME:PORT with a DNS name and no path, such as https://host.example.com:9443", w.URL)
}

// run serves the webhook while this process leads: only who leads has a translation.
func (w *Webhook) run(ctx context.Context, t serve.LeaderContext) error {
	config := kube.Unlimited(t.Management)
	client, err := kube.NewClientset(config)
	if err != nil {
		return fmt.Errorf("the management cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("the management cluster: %w", err)
	}
	host := webhook.Service + "." + t.Namespace + ".svc"
	if w.URL != "" {
		if host, err = w.host(); err != nil {
			return err
		}
	}
	store := &serving.Store{Client: client, Namespace: t.Namespace, Name: webhook.Secret, Hosts: []string{host}, Now: time.Now}
	hook := webhook.New(webhook.Options{Namespace: t.Namespace, State: t.State, Mode: webhook.Mode(w.Roles), Log: t.Log})
	return hook.Run(ctx, webhook.ServeOptions{
		Bind: w.Bind, URL: strings.TrimRight(w.URL, "/"), Address: w.Address, FailurePolicy: w.FailurePolicy, Client: client, Dynamic: dynamicClient, Changed: t.Changed,
		Certificate: func(ctx context.Context) (webhook.Certificate, error) {
			shown, bundle, err := store.Certificate(ctx)
			return webhook.Certificate{TLS: shown, Bundle: bundle}, err
		},
	})
}
