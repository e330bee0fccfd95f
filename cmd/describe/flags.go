package describe

import (
	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ListOptions say which objects are listed, and in which order.
type ListOptions struct {
	// Search keeps the objects whose name contains one of these.
	Search []string
	// Namespace keeps the policies of a namespace; empty means all.
	Namespace string
	Selector  cmdutil.SelectorFlag
	Sort      cmdutil.SortFlag
}

// ofLists are the flags that go with lists only.
var ofLists = []string{"search", "selector", "sort-by", "all-namespaces", "no-headers"}

// addFlags adds the flags of lists of a kind to cmd.
func (l *ListOptions) addFlags(cmd *cobra.Command, k *kind) {
	flags := cmd.Flags()
	flags.StringSliceVarP(&l.Search, "search", "s", nil, "list only objects whose name contains this `text`; may be repeated")
	l.Sort.AddFlag(cmd, ".ref.name")
	if k.kind != snapshot.KubernetesCluster { // registering does not copy labels of users
		l.Selector.AddFlag(cmd)
	}
	flags.BoolP("all-namespaces", "A", false, "list the objects of all namespaces, which is the default")
	if k.isPolicy() {
		cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	} else {
		_ = flags.MarkHidden("all-namespaces") // people type it
	}
}

// onlyOfLists fails if a flag of lists is set.
func onlyOfLists(cmd *cobra.Command) error {
	for _, name := range ofLists {
		if cmd.Flags().Changed(name) {
			return cmdutil.FlagErrorf("NAME and --%s cannot be used together", name)
		}
	}
	return nil
}

// addSourceFlags adds the flags that say what is read. Of policies, -n is the namespace of the policies, as with
// kubectl and as with meshctl create; elsewhere it is that of the management plane.
func (o *Options) addSourceFlags(cmd *cobra.Command, k *kind) {
	if !k.isPolicy() {
		o.Source.AddFlags(cmd)
		return
	}
	cmdutil.AddFileFlags(cmd, &o.Source.Dir)
	o.Source.Kube.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.List.Namespace, "namespace", "n", "", "`namespace` of the policies (default: all)")
	cmd.Flags().StringVar(&o.Source.Namespace, "mgmt-namespace", snapshot.DefaultNamespace, "`namespace` of the management plane")
	for _, cluster := range []string{"kubeconfig", "context", "mgmt-namespace"} {
		cmd.MarkFlagsMutuallyExclusive("dir", cluster)
		cmd.MarkFlagsMutuallyExclusive("snapshot", cluster)
	}
}
