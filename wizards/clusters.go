package wizards

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Context is a context of a kubeconfig, and its cluster.
type Context struct {
	Name string
	// Server is the URL of its API server, and Version that of Kubernetes.
	Server, Version string
	// UID identifies the cluster: it is the same for contexts of the same cluster.
	UID string
	// Current is true for the context that kubectl uses.
	Current bool
	// Members are the clusters registered there: their UIDs by name.
	Members map[string]string
	// Problem says why it cannot be used; empty if it can.
	Problem string
}

// Member is a cluster to register.
type Member struct {
	// Context of the kubeconfig, and the name to register it under.
	Context, Name string
	// Registered is true if it is already registered under this name.
	Registered bool
}

// The flags that Clusters asks for.
const (
	ManagementFlag = "context"
	RegisterFlag   = "register"
)

// ErrNoCluster means that no context of the kubeconfig can be used.
var ErrNoCluster = errors.New("no context of the kubeconfig leads to a cluster that can be used; " +
	"start the clusters, fix the kubeconfig, or set another one with --kubeconfig")

// unusable is the ErrNoCluster of a context that was named.
type unusable struct{ text string }

func (u *unusable) Error() string        { return u.text }
func (u *unusable) Is(target error) bool { return target == ErrNoCluster }

// Clusters asks which cluster is the management cluster, and which to register.
type Clusters struct {
	Prompter
	Contexts []Context
	// Answers so far, by ManagementFlag and RegisterFlag. They remain if a
	// question fails.
	Answers Answers
	// Title says what the questions make; empty if nobody is asked.
	Title string
	// Sections are the names of the parts of the questions, in their order.
	Sections []string

	heading *heading
}

// Step is that of a section.
func (cs *Clusters) Step(section string) Step { return stepOf(cs.Sections, section, nil) }

// Enter says to which section the questions belong that follow.
func (cs *Clusters) Enter(section string) {
	if h, ok := cs.Prompter.(*History); ok {
		h.step = cs.Step(section)
	}
}

// titled is the heading, which is one for all calls of Ask.
func (cs *Clusters) titled() *heading {
	if cs.heading == nil {
		cs.heading = &heading{title: cs.Title}
	}
	return cs.heading
}

// Ask runs what asks, with which the user can go back until the answers are followed by deeds.
func (cs *Clusters) Ask(ask func() error) error {
	asks := cs.Prompter
	history := NewHistory(asks, func() func() {
		answers := maps.Clone(cs.Answers)
		return func() {
			clear(cs.Answers)
			maps.Copy(cs.Answers, answers)
		}
	})
	history.heading = cs.titled()
	cs.Prompter = history
	defer func() { cs.Prompter = asks }()
	return history.Run(ask)
}

// usable are the contexts that can be used.
func (cs *Clusters) usable() ([]*Context, error) {
	var out []*Context
	for i := range cs.Contexts {
		if cs.Contexts[i].Problem == "" {
			out = append(out, &cs.Contexts[i])
		}
	}
	if len(out) == 0 {
		return nil, ErrNoCluster
	}
	return out, nil
}

// ReportProblems lists the contexts that cannot be used.
func (cs *Clusters) ReportProblems() {
	for _, c := range cs.Contexts {
		if c.Problem != "" {
			cs.titled().say(cs.Prompter)
			cs.Say(clean(fmt.Sprintf("Context %s is skipped: %s\n", c.Name, oneLine(c.Problem))))
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Context finds one by its name.
func (cs *Clusters) Context(name string) *Context {
	for i := range cs.Contexts {
		if cs.Contexts[i].Name == name {
			return &cs.Contexts[i]
		}
	}
	return nil
}

// usableContext finds a context that can be used.
func (cs *Clusters) usableContext(name string) (*Context, error) {
	c := cs.Context(name)
	switch {
	case c == nil:
		var names []string
		for i := range cs.Contexts {
			names = append(names, cs.Contexts[i].Name)
		}
		return nil, &unusable{fmt.Sprintf("context %q does not exist in the kubeconfig; choose one of: %s", name, strings.Join(names, ", "))}
	case c.Problem != "":
		return nil, &unusable{fmt.Sprintf("context %s: %s", name, c.Problem)}
	}
	return c, nil
}

func (c *Context) label() string {
	text := fmt.Sprintf("%s (%s, Kubernetes %s", c.Name, c.Server, c.Version)
	if len(c.Members) > 0 {
		text += fmt.Sprintf("; already manages %s", snapshot.Count(len(c.Members), "cluster"))
	}
	return text + ")"
}

// Management asks which cluster is the management cluster.
func (cs *Clusters) Management() (*Context, error) {
	if was := cs.Answers[ManagementFlag]; len(was) > 0 {
		return cs.usableContext(was[0])
	}
	usable, err := cs.usable()
	if err != nil {
		return nil, err
	}
	preset := usable[0]
	options := make([]Option, 0, len(usable))
	for _, c := range usable {
		options = append(options, Option{Value: c.Name, Text: c.label()})
		if len(c.Members) > len(preset.Members) || len(c.Members) == len(preset.Members) && c.Current {
			preset = c
		}
	}
	name, err := cs.Select(Question{Text: "Which cluster is the management cluster?", Help: "It stores the policies and the discovered objects. It can be managed itself."}, options, preset.Name)
	if err != nil {
		return nil, err
	}
	cs.Answers[ManagementFlag] = []string{name}
	return cs.Context(name), nil
}

// registered is the name under which the management cluster knows a cluster.
func registered(management, c *Context) string {
	for _, name := range slices.Sorted(maps.Keys(management.Members)) {
		if uid := management.Members[name]; uid != "" && uid == c.UID {
			return name
		}
	}
	return ""
}

// Members asks which clusters to register, and for the name of each. It lists
// those that are already registered.
func (cs *Clusters) Members(management *Context) ([]Member, error) {
	if _, given := cs.Answers[RegisterFlag]; given {
		return cs.membersFromFlag(management)
	}
	usable, err := cs.usable()
	if err != nil {
		return nil, err
	}
	var options []Option
	var all []string
	seen := map[string]string{}
	for _, c := range usable {
		name := registered(management, c)
		switch {
		case name != "":
			cs.Say(clean(fmt.Sprintf("Already registered: %s (context %s)\n", name, c.Name)))
		case seen[c.UID] != "":
			cs.Say(clean(fmt.Sprintf("Context %s leads to the same cluster as %s.\n", c.Name, seen[c.UID])))
		default:
			options = append(options, Option{Value: c.Name, Text: c.label()})
			all = append(all, c.Name)
			seen[c.UID] = c.Name
		}
	}
	selected, asked := cs.Answers["?contexts"]
	if !asked && len(options) > 0 {
		if selected, err = cs.MultiSelect(Question{Text: "Which clusters do you want to register?"}, options, all); err != nil {
			return nil, err
		}
		cs.Answers["?contexts"] = selected
	}
	pairs := []string{}
	taken := slices.Collect(maps.Keys(management.Members))
	for _, name := range selected {
		member, err := cs.askName(name, taken)
		if err != nil {
			return nil, err
		}
		taken = append(taken, member.Name)
		pairs = append(pairs, member.String())
	}
	cs.Answers[RegisterFlag] = pairs
	delete(cs.Answers, "?contexts")
	for _, name := range selected {
		delete(cs.Answers, "?name of "+name)
	}
	return cs.membersFromFlag(management)
}

// String is the value of RegisterFlag.
func (m Member) String() string { return m.Context + "=" + m.Name }

// SelectCluster asks for one cluster to register, and for its name, unless they
// are given.
func (cs *Clusters) SelectCluster(management *Context, context, name string) (Member, error) {
	usable, err := cs.usable()
	if err != nil {
		return Member{}, err
	}
	if was := cs.Answers["?context"]; context == "" && len(was) > 0 {
		context = was[0]
	}
	if context == "" {
		options := make([]Option, 0, len(usable))
		preset := ""
		for _, c := range usable {
			text := c.label()
			if known := registered(management, c); known != "" {
				text += ", registered as " + known
			} else if preset == "" {
				preset = c.Name
			}
			options = append(options, Option{Value: c.Name, Text: text})
		}
		if context, err = cs.Select(Question{Text: "Which cluster do you want to register?"}, options, preset); err != nil {
			return Member{}, err
		}
		cs.Answers["?context"] = []string{context}
	}
	c, err := cs.usableContext(context)
	if err != nil {
		return Member{}, err
	}
	if known := registered(management, c); known != "" && (name == "" || name == known) {
		cs.Say(clean(fmt.Sprintf("It is already registered as %s; registering it again repairs what is broken, and renews a credential that is about to expire.\n", known)))
		return Member{Context: context, Name: known, Registered: true}, nil
	}
	if name != "" {
		return Member{Context: context, Name: name}, nil
	}
	return cs.askName(context, slices.Collect(maps.Keys(management.Members)))
}

// Reset drops the answers of SelectCluster, to ask again.
func (cs *Clusters) Reset() {
	for _, context := range cs.Answers["?context"] {
		delete(cs.Answers, "?name of "+context)
	}
	delete(cs.Answers, "?context")
}

// Retry shows an error, and asks whether to try again.
func (cs *Clusters) Retry(err error, options ...Option) (string, error) {
	cs.Say(clean(err.Error()) + "\n")
	options = append(append([]Option{{"again", "try again"}}, options...), Option{"stop", "stop here"})
	return cs.Select(Question{Text: "The check failed, and nothing was written. What next?"}, options, "again")
}

// Confirm asks a yes-or-no question.
func (cs *Clusters) Confirm(question string) (bool, error) {
	answer, err := cs.Select(Question{Text: question}, []Option{{"yes", "yes"}, {"no", "no"}}, "yes")
	return answer == "yes", err
}

// askName asks for the name of a cluster.
func (cs *Clusters) askName(context string, taken []string) (Member, error) {
	key := "?name of " + context
	if was := cs.Answers[key]; len(was) > 0 {
		return Member{Context: context, Name: was[0]}, nil
	}
	q := Question{Text: fmt.Sprintf("Name for the cluster of context %s?", clean(context)), Help: "Policies refer to the cluster by this name."}
	name, err := cs.Input(q, SuggestName(context, taken), func(name string) error {
		switch {
		case len(validation.IsDNS1123Label(name)) > 0:
			return fmt.Errorf("cluster name %q: use at most 63 lower-case letters, digits and hyphens", name)
		case slices.Contains(taken, name):
			return fmt.Errorf("another cluster is already named %s; choose another name", name)
		}
		return nil
	})
	if err == nil {
		cs.Answers[key] = []string{name}
	}
	return Member{Context: context, Name: name}, err
}

// membersFromFlag reads RegisterFlag: CONTEXT=NAME, or CONTEXT for
// the suggested name.
func (cs *Clusters) membersFromFlag(management *Context) ([]Member, error) {
	var out []Member
	taken := slices.Collect(maps.Keys(management.Members))
	for _, value := range cs.Answers[RegisterFlag] {
		m := Member{Context: value}
		if at := strings.LastIndex(value, "="); at >= 0 && cs.Context(value) == nil {
			m.Context, m.Name = value[:at], value[at+1:]
		}
		c, err := cs.usableContext(m.Context)
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %w", RegisterFlag, value, err)
		}
		known := registered(management, c)
		m.Name = cmp.Or(m.Name, known, SuggestName(m.Context, taken))
		m.Registered = m.Name == known
		taken = append(taken, m.Name)
		out = append(out, m)
	}
	return out, nil
}

// SuggestName makes a cluster name from the name of a context, without the
// prefixes of cloud providers, kind and k3d.
func SuggestName(context string, taken []string) string {
	stem := context
	if strings.HasPrefix(stem, "arn:") {
		stem = stem[strings.LastIndex(stem, "/")+1:]
	}
	if strings.HasPrefix(stem, "gke_") {
		stem = stem[strings.LastIndex(stem, "_")+1:]
	}
	stem = strings.TrimPrefix(strings.TrimPrefix(stem, "kind-"), "k3d-")
	stem = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, stem)
	const longest = 50
	stem = cmp.Or(strings.Trim(stem[:min(len(stem), longest)], "-"), "cluster")
	name := stem
	for i := 2; slices.Contains(taken, name); i++ {
		name = fmt.Sprintf("%s-%d", stem, i)
	}
	return name
}
