package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeFlags say which cluster a command talks to.
type KubeFlags struct {
	Kubeconfig string
	Context    string
}

// AddFlags adds --kubeconfig and --context (also spelled --kubecontext, as in
// Gloo Mesh) to cmd.
func (k *KubeFlags) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.Kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config)")
	cmd.Flags().StringVar(&k.Context, "context", "", "`context` in the kubeconfig (default: the current one)")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "kubecontext" {
			name = "context"
		}
		return pflag.NormalizedName(name)
	})
	// An error here means that the flag does not exist; it was added above.
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := Contexts(k.Kubeconfig)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// Contexts lists the names of the contexts of a kubeconfig, ascending.
func Contexts(kubeconfig string) ([]string, error) {
	raw, _, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return contextNames(raw), nil
}

// someContexts is Factory.Contexts without a demo.
func someContexts(kubeconfig string) (names []string, current string, err error) {
	raw, where, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	if names = contextNames(raw); len(names) == 0 {
		return nil, "", noContext(where)
	}
	return names, raw.CurrentContext, nil
}

// noContextError says that a kubeconfig leads nowhere.
type noContextError struct {
	// where names the files that were read, and demo is the kubeconfig of a demo that runs; empty if none does.
	where, demo string
}

func (e *noContextError) Error() string {
	text := "kubeconfig " + e.where + ": the file does not exist or has no context; set another one with --kubeconfig"
	if e.demo != "" {
		text += ". A demo runs on this machine: add --demo, or run: export KUBECONFIG=" + shellescape.Quote(e.demo)
	}
	return text
}

func noContext(where string) error { return &UnreachableError{Err: &noContextError{where: where}} }

// loadConfig is Factory.Config without the program's own settings; renewal is what to do when its
// credential has expired.
func loadConfig(kubeconfig, context string) (config *rest.Config, renewal string, err error) {
	raw, where, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	if kubeconfig == "" && context == "" && len(raw.Contexts) == 0 {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, "the kubelet renews it: restart the Pod, or check its ServiceAccount", nil
		}
	}
	if err := pickContext(raw, where, context); err != nil {
		return nil, "", err
	}
	config, err = clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, "", UnreachableErrorf("kubeconfig %s: %w; fix the file, or set another one with --kubeconfig", where, err)
	}
	return config, renewalOf(config, raw.Contexts[cmp.Or(context, raw.CurrentContext)].AuthInfo), nil
}

// renewalOf says how the credential of a user of a kubeconfig is renewed.
func renewalOf(config *rest.Config, user string) string {
	set := "kubectl config set-credentials " + shellescape.Quote(user)
	switch {
	case config.ExecProvider != nil:
		return "log in again with " + config.ExecProvider.Command
	case config.BearerTokenFile != "":
		return "write a new one to " + config.BearerTokenFile
	case config.BearerToken != "":
		return "get a new one, and store it with: " + set + " --token=TOKEN"
	}
	return "get a new one, and store it with: " + set + " --client-certificate=FILE --client-key=FILE --embed-certs"
}

// readKubeconfig reads and merges the files that kubectl would read; where
// names them for messages.
func readKubeconfig(kubeconfig string) (raw *clientcmdapi.Config, where string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	// client-go would log that $KUBECONFIG names a missing file; we say it ourselves.
	rules.Warner = func(error) {}
	where = strings.Join(rules.Precedence, ", ")
	if kubeconfig != "" {
		rules.ExplicitPath = kubeconfig
		where = kubeconfig
		if info, err := os.Stat(kubeconfig); errors.Is(err, fs.ErrNotExist) {
			return nil, where, UnreachableErrorf("kubeconfig %s: the file does not exist; set another one with --kubeconfig", kubeconfig)
		} else if err == nil && info.IsDir() {
			return nil, where, UnreachableErrorf("kubeconfig %s: is a folder; set a file with --kubeconfig", kubeconfig)
		}
	}
	raw, err = rules.Load()
	if err != nil {
		return nil, where, UnreachableErrorf("kubeconfig %s: %w; fix the file, or set another one with --kubeconfig", where, err)
	}
	return raw, where, nil
}

// pickContext checks that the wanted context exists.
func pickContext(raw *clientcmdapi.Config, where, context string) error {
	known := contextNames(raw)
	switch {
	case len(known) == 0:
		return noContext(where)
	case context == "" && raw.CurrentContext == "":
		return UnreachableErrorf("kubeconfig %s: no current context is set; choose one with --context: %s", where, strings.Join(known, ", "))
	case context == "":
		context = raw.CurrentContext
	}
	if !slices.Contains(known, context) {
		return UnreachableErrorf("kubeconfig %s: context %q does not exist; choose one of: %s", where, context, strings.Join(known, ", "))
	}
	cluster := raw.Contexts[context].Cluster
	if _, ok := raw.Clusters[cluster]; !ok {
		return UnreachableErrorf("kubeconfig %s: context %q names cluster %q, which is not in the file; fix the file", where, context, cluster)
	}
	return nil
}

func contextNames(raw *clientcmdapi.Config) []string {
	names := make([]string, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Config finds how to reach the cluster that the flags name.
func (k *KubeFlags) Config(f *Factory) (*rest.Config, error) {
	config, err := f.Config(k.Kubeconfig, k.Context)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to a cluster: %w", err)
	}
	return config, nil
}
