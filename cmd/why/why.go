// Package why is the command `meshctl why`: what becomes of a request, and because of what.
package why

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// From is the name of a workload, and To that of a service or its host.
	From, To string
	Request  explain.Request
	// Proxy: the proxies of the pods are asked, too.
	Proxy bool
	// AssumeDown are names of what is assumed not to answer.
	AssumeDown []string
	// headers are the values of --header.
	headers []string
}

const long = `Says what becomes of a request of a workload to a service: whether it is allowed
or refused and by which policy, which route it takes, where it ends, and what is
done with it on the way. For a refused request, the smallest change that would
allow it is shown. Where something decides that cannot be followed, the answer
is UNKNOWN and names it; "meshctl help meshes decides" lists what that is.

FROM is a workload, or a service with a single one. TO is a service, named as
for "meshctl describe", or a host name as FROM calls it: HOST, HOST:PORT or
http://HOST:PORT/PATH, as for "meshctl demo call". A short name leads to the
service that FROM would reach by it. METHOD is GET and PATH is / unless they are
given.

The answer follows from the objects in all clusters and from the policies: no
request is sent. If a cluster that may decide cannot be read, the first line
says so, and the exit code is that of UNKNOWN. With --no-clusters, only the
management cluster is read; with --dir, a folder of manifests.

A line says what FROM has sent there in the last 15 minutes, whatever it asked
for, as the meshctl serve that leads counts it (see "meshctl top"). The answer
does not follow from it; a note says so where the two contradict each other.

With --proxy, the configuration that proxies hold is read, too, by port-forward
and with your own credential, and the same request is evaluated on it: at one
pod of FROM, at one pod of each workload where it ends, and at the gateways
between them. Where that differs from what follows from the objects, the object
that makes the difference is named. What proxies hold is in force: with --proxy,
only requests that they let in, and of which the objects say the same or know
nothing, count as allowed. Agents of clusters that are reached via relay read no
proxies: a context of your own has to lead there, and the answer says so if none
does.`

const example = `  # Say whether productpage may read a review, and which reviews it gets
  meshctl why productpage-v1 reviews GET /reviews/1

  # The same for the requests of a user
  meshctl why productpage-v1 reviews GET /reviews/1 --header 'end-user: jason'

  # Compare that with what the proxies of the pods hold
  meshctl why productpage-v1 reviews GET /reviews/1 --proxy

  # Who answers if another cluster does not?
  meshctl why productpage-v1 reviews --assume-down cluster-2

  # A service of another cluster, by its host name, as JSON
  meshctl why productpage-v1 reviews.bookinfo.svc.cluster-2.global -o json`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "why FROM TO [METHOD] [PATH]",
		// What other programs call it.
		SuggestFor: []string{"explain", "trace"},
		Short:      "Say what becomes of a request, and because of what",
		Long:       long,
		Example:    example,
		Args:       cmdutil.Args("FROM", "TO", "[METHOD]", "[PATH]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.complete(args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.names,
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "not all of these requests are known to be allowed"})
	opts.Output.Prints(cmdutil.Form{Value: explain.Why{}})
	opts.Source.AddFlags(cmd)
	opts.Source.AddClustersFlag(cmd)
	opts.Source.AddServerFlag(cmd)
	cmd.Flags().BoolVar(&opts.Proxy, "proxy", false, "evaluate the request on what the proxies of the pods hold, too")
	cmd.Flags().StringSliceVar(&opts.AssumeDown, "assume-down", nil, "`name` of a cluster, region, service, workload or SERVICE:SUBSET that is assumed not to answer, as for meshctl simulate; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("assume-down", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return opts.Source.LossNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	for _, other := range []string{"dir", "snapshot", "assume-down"} {
		cmd.MarkFlagsMutuallyExclusive("proxy", other)
	}
	cmd.Flags().StringArrayVar(&opts.headers, "header", nil, "a `header` of the request, as 'NAME: VALUE' or NAME=VALUE; may be repeated for other headers")
	cmd.Flags().Uint32Var(&opts.Request.Port, "port", 0, "`port` of the service (default: its first one for HTTP)")
	cmd.AddCommand(newMayCmd(f, nil))
	return cmd
}

// names completes FROM, TO and METHOD.
func (o *Options) names(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return o.Source.Names(cmd.Context(), snapshot.Workload), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return o.Source.Names(cmd.Context(), snapshot.Destination, snapshot.VirtualDestination), cobra.ShellCompDirectiveNoFileComp
	case 2:
		return methods(), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// methods are those of HTTP (RFC 9110, RFC 5789).
func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect}
}

// complete takes the arguments and flags.
func (o *Options) complete(args []string) error {
	o.From = args[0]
	to, err := cmdutil.ParseTarget("TO", args[1])
	switch {
	case err != nil:
		return err
	case to.Port != 0 && o.Request.Port != 0:
		return cmdutil.FlagErrorf("TO %q: it has a port, and --port is given as well; leave out one of them", args[1])
	case to.Port != 0:
		o.Request.Port = to.Port
	}
	o.To, o.Request.Path = to.Host, to.Path
	if to.Scheme == "grpc" {
		o.Request.Method = http.MethodPost // all calls of gRPC are
	}
	rest := args[2:]
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "/") {
		o.Request.Method, rest = rest[0], rest[1:]
	}
	if len(rest) > 1 {
		return cmdutil.FlagErrorf("METHOD %q: want a method such as GET before the path %s", rest[0], rest[1])
	}
	switch {
	case len(rest) == 1 && o.Request.Path != "":
		return cmdutil.FlagErrorf("PATH %q: TO %q has a path as well; leave out one of them", rest[0], args[1])
	case len(rest) == 1:
		o.Request.Path = rest[0]
	}
	if m := o.Request.Method; m != strings.ToUpper(m) {
		return cmdutil.FlagErrorf("METHOD %q: methods are in upper case; want %s", m, strings.ToUpper(m))
	}
	if err := checkPath(o.Request.Path); err != nil {
		return err
	}
	o.Request.Headers = map[string]string{}
	for _, h := range o.headers {
		name, value, ok := cutHeader(h)
		if !ok {
			return cmdutil.FlagErrorf("--header %q: want 'NAME: VALUE'", h)
		}
		name = strings.ToLower(name)
		if _, repeated := o.Request.Headers[name]; repeated {
			return cmdutil.FlagErrorf("--header %s is given twice: versions of Envoy differ in how they compare several values of a header; ask with one of them", name)
		}
		o.Request.Headers[name] = value
	}
	return nil
}

// checkPath rejects what proxies would change before they look at it (istio.io: authorization
// policy normalization).
func checkPath(p string) error {
	p, _, _ = strings.Cut(p, "?")
	switch {
	case p == "":
		return nil
	case !strings.HasPrefix(p, "/"):
		return cmdutil.FlagErrorf("PATH %q: want one that begins with /", p)
	case strings.Contains(p, "#"):
		return cmdutil.FlagErrorf("PATH %q: a fragment is not sent; leave out # and what follows", p)
	}
	decoded := escaped.ReplaceAllStringFunc(p, unescape)
	for part := range strings.SplitSeq(decoded, "/") {
		if part == "." || part == ".." {
			return cmdutil.FlagErrorf("PATH %q: proxies resolve it to %s, unless pathNormalization of their mesh is NONE; ask for that", p, path.Clean(decoded))
		}
	}
	if decoded != p {
		return cmdutil.FlagErrorf("PATH %q: proxies read it as %s, unless pathNormalization of their mesh is NONE; ask for that", p, decoded)
	}
	return nil
}

// escaped is an escaped character of a URL.
var escaped = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// unescape is the character that is escaped, if it need not be (RFC 3986, unreserved): proxies replace these, and leave others alone.
func unescape(text string) string {
	plain, err := url.PathUnescape(text)
	if err == nil && unreserved.MatchString(plain) {
		return plain
	}
	return text
}

var unreserved = regexp.MustCompile("^[A-Za-z0-9._~-]$")

func cutHeader(text string) (name, value string, ok bool) {
	at := strings.IndexAny(text, ":=")
	if at <= 0 {
		return "", "", false
	}
	return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:]), true
}

func run(ctx context.Context, o *Options) error {
	evidence := o.Source.Evidence(ctx)
	read, err := o.Source.ReadInForce(ctx, o.Streams)
	if err != nil {
		return err
	}
	read.Evidence = evidence()
	translator := engine.New(engine.Options{})
	index := read.Index(translator)
	from, err := cmdutil.Caller(index, o.From)
	if err != nil {
		return err
	}
	to, err := cmdutil.Called(index, from, o.To)
	if err != nil {
		return err
	}
	answer, err := o.ask(read, translator, index, from, to)
	if err != nil {
		return err
	}
	if answer == nil {
		return cmdutil.NotFoundErrorf("workload %s: its mesh was not found; see: meshctl describe workload %s", from.Name, from.Name)
	}
	if o.Proxy {
		if err := o.askProxies(ctx, read, index, answer); err != nil {
			return err
		}
	}
	answer.NoteAlias(index, o.To)
	explain.NoteElsewhere(index, answer, o.To)
	if err := o.Output.Print(o.Streams.Out, answer, func(out io.Writer) error {
		return cmdutil.PrintPage(out, o.Output.Painter(o.Streams), answer.Page())
	}); err != nil {
		return err
	}
	if !answer.IsAllowed() {
		return cmdutil.ErrFindings
	}
	return nil
}

// ask asks for the request, with what is assumed not to answer.
func (o *Options) ask(read *reading.Reading, translator *engine.Translator, index *explain.Index, from, to snapshot.Ref) (*explain.Why, error) {
	losses, err := cmdutil.Losses(index, o.AssumeDown)
	if err != nil {
		return nil, err
	}
	if len(losses) == 0 {
		return read.Why(translator, index, from, to, o.Request)
	}
	answer := read.Assume(index, losses).Why(from, to, o.Request)
	explain.NoteAssumed(index, answer, losses)
	return answer, nil
}

// askProxies adds what the proxies of the pods hold to an answer.
func (o *Options) askProxies(ctx context.Context, read *reading.Reading, index *explain.Index, answer *explain.Why) error {
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Reading the proxies")
	explain.AddProxies(index, answer, check.NewProxies(ctx, management.Detours, read.Input.Management.KubernetesClusters, proxyTimeout))
	progress.End(ctx.Err())
	return ctx.Err()
}

// proxyTimeout bounds each request for a proxy.
const proxyTimeout = 20 * time.Second
