package help

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// topic is a page of help that belongs to no command.
type topic struct {
	name, short string
	// intro comes first, in lines of at most 80 columns.
	intro string
	// header names the columns of the rows: what a row is about, then its cells.
	header []string
	// sections have the rows; nil if there are none.
	sections func() []section
	// files can be printed each by its name; a topic has rows or files.
	files []file
}

type section struct {
	title string
	rows  []row
}

// row is one entry. Backticks mark names of fields, for Markdown.
type row struct {
	about string
	cells []string
}

const meshesIntro = `What each mesh can express. Every renderer declares this for each field, and the
translation follows the same declarations:

  enforced         the mesh does what the field says
  approximated     the mesh does something close to it, never less strict; the
                   status of the policy says what is different
  not expressible  the mesh cannot do it; a TrafficPolicy or AccessPolicy with
                   the field is INVALID for the services of that mesh, and
                   nothing weaker is written; other kinds get a warning

The tests send requests through Istio's proxies. Those of Open Service Mesh come
only as container images: the tests compare the configuration that they receive
with what was meant, and do not see what they do with it.

Fields marked (security), and all fields of an AccessPolicy, decide who may call
or read.

What decides beside policies is at the end. Answers follow it, name it and say
UNKNOWN, or do not look at it. What proxies hold follows from all of it: ask
them with "meshctl why --proxy".`

const glooMeshIntro = `Where meshctl deliberately differs from Gloo Mesh 1.x. Its API and its manifests
are the same; the behaviour below is not.`

const federationIntro = `spec.federation of a VirtualMesh makes services reachable from other members.
Its selectors say which services may be imported where. Its mode says which of
them a member does import:

  ALL        all of them. It is the default. The proxies of each member hold all
             services of all others, which grows with the square of the members.
  DECLARED   those that somebody declared to be called. Without selectors, all
             services may be imported.

With DECLARED, a member imports a service if one of these declares it:

  ServiceDependency  It selects a workload of the member, which may be a
                     gateway, and the service. Without destinationSelectors,
                     that is every service. It also limits the proxies of the
                     workload to what its ServiceDependencies name.
  TrafficPolicy      It is about requests of callers in the member, for a
                     service that they know, and shifts or mirrors them to this
                     one. A target stays imported until its route is gone.
  TrafficPolicy,     It names both sides: the service in kubeServiceRefs, and
  AccessPolicy       the cluster of the member in clusters of sourceSelector,
                     or in clusterName of a service account.
  selectors          One element has both destinationSelectors and meshes.

These declare nothing: policies that select services or callers by labels or
namespaces, as they are rules for whoever calls; and routes that were written by
hand, as their authors decide about their namespace only, and not about what all
proxies of the mesh hold.

A VirtualDestination needs no import of the services behind it. It has an entry
of its own, with their gateways or pods.

An edit withdraws an import at once. What goes because something is missing,
such as the workloads of a ServiceDependency, goes after
spec.withdrawals.gracePeriod of the Settings.

  meshctl why CALLER SERVICE         which declaration is missing, as a manifest
  meshctl describe destination NAME  which members import it, because of what
  meshctl describe virtualmesh NAME  what a proxy holds with each of the modes
  meshctl plan -f FILE               what an edit of the mode would withdraw`

func topics() []topic {
	return []topic{
		{name: "access-logs", short: "How proxies log requests, and what Istio needs for that", intro: accessLogsIntro},
		{
			name: CodesTopic, short: "What the codes of issues mean",
			intro: codesIntro, header: []string{"Code", "Severity", "Meaning"}, sections: codeSections,
		},
		{name: "exit-codes", short: "What the exit codes mean", intro: cmdutil.ExitCodesHelp},
		{name: "federation", short: "Which services a mesh imports, and what declares that", intro: federationIntro},
		gitopsTopic(),
		{
			name: "glossary", short: "The words that meshctl uses",
			header: []string{"Word", "Meaning"}, sections: glossarySections,
		},
		{
			name: "gloo-mesh", short: "Where meshctl differs from Gloo Mesh 1.x",
			intro: glooMeshIntro, header: []string{"Field or case", "Gloo Mesh 1.x", "meshctl"}, sections: differenceSections,
		},
		{
			name: "meshes", short: "What Istio and Open Service Mesh can express of each field",
			intro: meshesIntro, header: append([]string{"Field"}, meshNames()...), sections: supportSections,
		},
		monitoringTopic(),
		{name: "relay", short: "How agents reach the management plane, and clusters join without a credential", intro: relayIntro},
		{name: "roles", short: "How kubectl says what a policy does, and who may write which", intro: rolesIntro},
		{name: SchemaTopic, short: "The fields of what commands print with -o json and -o yaml", intro: schemaIntro},
	}
}

func topicNames() []string {
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return names
}

func topicOf(name string) *topic {
	all := topics()
	if i := slices.IndexFunc(all, func(t topic) bool { return t.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func differenceSections() []section {
	var out []section
	for _, a := range differences() {
		s := section{title: a.Title}
		for _, d := range a.Rows {
			s.rows = append(s.rows, row{about: d.Case, cells: []string{d.GlooMesh, d.Meshctl}})
		}
		out = append(out, s)
	}
	return out
}

func meshNames() []string {
	var names []string
	for _, d := range engine.Dialects() {
		names = append(names, d.Name)
	}
	return names
}

func supportSections() []section {
	var out []section
	for _, of := range explain.DeclaredFields() {
		s := section{title: of.Kind.String()}
		for _, r := range explain.SupportTable(of, engine.Dialects()) {
			about := "`" + r.Field + "`"
			if r.Case != "" {
				about += " " + r.Case
			}
			if r.Security && of.Kind != snapshot.AccessPolicy {
				about += " (security)"
			}
			s.rows = append(s.rows, row{about: about, cells: r.Cells})
		}
		out = append(out, s)
	}
	return append(out, outsideSections()...)
}

// outsideSections list what decides beside policies, by mesh.
func outsideSections() (out []section) {
	dialects := engine.Dialects()
	for i, d := range dialects {
		s := section{title: "What else decides in " + d.Name}
		for _, o := range d.Outside {
			r := row{about: o.What, cells: make([]string, len(dialects))}
			r.cells[i] = string(o.Regard)
			if o.Note != "" {
				r.cells[i] += ": " + o.Note
			}
			s.rows = append(s.rows, r)
		}
		out = append(out, s)
	}
	return out
}

// matching keeps the rows that contain all words, in any case of letters, in
// the title of their section or in themselves.
func matching(sections []section, words []string) []section {
	var out []section
	for _, s := range sections {
		kept := section{title: s.title}
		for _, r := range s.rows {
			text := strings.ToLower(plain(s.title + " " + r.about + " " + strings.Join(r.cells, " ")))
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) }) {
				kept.rows = append(kept.rows, r)
			}
		}
		if len(kept.rows) > 0 {
			out = append(out, kept)
		}
	}
	return out
}
