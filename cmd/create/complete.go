package create

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// words are the values of flags that have few.
func words() map[string][]string {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
	return map[string][]string{
		"trust": {"shared", "limited"}, "federate": {"all"}, "federation-mode": {"ALL", "DECLARED"}, "protocol": {"HTTP", "HTTPS", "GRPC", "HTTP2", "MONGO", "TCP", "TLS"}, "global-access": {"MESH_DEFAULT", "ENABLED", "DISABLED", "AUDIT"},
		"enforcement": {"enforce", "audit"}, "tls-mode": {"ISTIO_MUTUAL", "SIMPLE", "DISABLE"}, "allowed-methods": methods, "cors-methods": methods,
		"tp-actions": wizards.TrafficPolicyActions(), "vm-actions": wizards.VirtualMeshActions(),
		"retry-on": {"connect-failure", "gateway-error", "reset", "5xx", "refused-stream", "unavailable", "cancelled"},
	}
}

// AddCompletions completes the values of the flags of a form: services, meshes, clusters, and words.
func (o *Options) AddCompletions(cmd *cobra.Command) {
	service := o.names(func(s *cmdutil.Source, ctx context.Context) []string { return s.Services(ctx) })
	mesh := o.names(func(s *cmdutil.Source, ctx context.Context) []string {
		return qualified(s.Namespace, s.Names(ctx, snapshot.Mesh))
	})
	virtualMesh := o.names(func(s *cmdutil.Source, ctx context.Context) []string {
		return qualified(s.Namespace, s.Names(ctx, snapshot.VirtualMesh))
	})
	cluster := o.names(func(s *cmdutil.Source, ctx context.Context) []string { return s.Clusters(ctx) })
	role := o.names(func(s *cmdutil.Source, ctx context.Context) []string {
		return qualified(s.Namespace, s.Names(ctx, snapshot.Role))
	})
	place := o.names(func(s *cmdutil.Source, ctx context.Context) []string { return places(s.Services(ctx)) })
	for flag, complete := range map[string]cobra.CompletionFunc{
		"role": role, "subject": subjects, "vm-mesh": mesh, "vd-mesh": mesh, "vd-virtual-mesh": virtualMesh,
		"tp-services": place, "tp-callers": place, "ap-services": place, "ap-callers": place, "vd-services": place, "vd-listed": place,
		"alr-workloads": place, "wasm-workloads": place,
		"destination": service, "service": service, "nearest": service, "virtual-mesh": virtualMesh, "mirror": service, "federate-destination": service, "shift": o.targets, "mesh": mesh, "federate-to": mesh,
		"destination-clusters": cluster, "source-clusters": cluster, "federate-clusters": cluster,
		"nearest-clusters": cluster, "workload-clusters": cluster,
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete)
		}
	}
	for flag, known := range words() {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// source is what the flags that are typed already name.
func (o *Options) source() *cmdutil.Source {
	return &cmdutil.Source{Dir: o.Dir, Kube: o.Kube, Namespace: o.MgmtNamespace, Factory: o.Factory}
}

// CompleteNames completes the name of an object.
func (o *Options) CompleteNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.source().Names(cmd.Context(), o.Form.Kind), cobra.ShellCompDirectiveNoFileComp
}

func (o *Options) names(list func(*cmdutil.Source, context.Context) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return list(o.source(), cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// targets completes a value of --shift: a target, and after a comma what it may have.
func (o *Options) targets(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if at := strings.LastIndexByte(typed, ','); at >= 0 {
		var out []string
		for _, setting := range []string{"weight=", "port=", "subset."} {
			out = append(out, typed[:at+1]+setting)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	source := o.source()
	out := source.Services(cmd.Context())
	for _, name := range qualified(source.Namespace, source.Names(cmd.Context(), snapshot.VirtualDestination)) {
		out = append(out, "virtual="+name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// places are the namespaces of services, as NAMESPACE.CLUSTER, and the same for any cluster.
func places(services []string) []string {
	out := []string{"*.*"}
	for _, service := range services {
		if parts := strings.Split(service, "."); len(parts) == 3 {
			out = append(out, parts[1]+"."+parts[2], parts[1]+".*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// subjects completes the kind of a subject.
func subjects(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"user=", "group=", "serviceaccount="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func qualified(namespace string, names []string) []string {
	for i := range names {
		names[i] = namespace + "/" + names[i]
	}
	return names
}
