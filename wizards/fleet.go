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

// Context is a context of a kubeconfig, and what it leads to.
type Context struct {
	Name string
	// Server is its API server's URL, and Version what runs there.
	Server, Version string
	// UID is the same for contexts that lead to the same cluster.
	UID string
	// Current is true for the context that kubectl uses.
	Current bool
	// Members are the clusters registered there: UIDs by name.
	Members map[string]string
	// Problem says why it cannot be used; empty if it can.
	Problem string
}

// Member is a cluster to manage.
type Member struct {
	// Context of the kubeconfig, and the name to register it under.
	Context, Name string
	// Registered is true if it is registered under the name already.
	Registered bool
}

// The flags that Fleet asks for.
const (
	ManagementFlag = "mgmt-context"
	RegisterFlag   = "register"
)

// ErrNoCluster: there is no cluster to offer.
var ErrNoCluster = errors.New("no context of the kubeconfig leads to a cluster that can be used; " +
	"start the clusters, fix the kubeconfig, or set another one with --kubeconfig")

// Fleet asks which cluster manages, and which are managed.
type Fleet struct {
	Prompter
	Contexts []Context
	// Answers so far, by ManagementFlag and RegisterFlag. They are kept when a
	// question fails.
	Answers Answers
}

// usable are the contexts that lead to a cluster; the others are told of once.
func (f *Fleet) usable() ([]*Context, error) {
	var out []*Context
	for i := range f.Contexts {
		if f.Contexts[i].Problem == "" {
			out = append(out, &f.Contexts[i])
		}
	}
	if len(out) == 0 {
		return nil, ErrNoCluster
	}
	return out, nil
}

// SayProblems tells of the contexts that cannot be used.
func (f *Fleet) SayProblems() {
	for _, c := range f.Contexts {
		if c.Problem != "" {
			f.Say(clean(fmt.Sprintf("Context %s is skipped: %s\n", c.Name, oneLine(c.Problem))))
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Context finds one by its name.
func (f *Fleet) Context(name string) *Context {
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i]
		}
	}
	return nil
}

// need finds a context that can be used.
func (f *Fleet) need(name string) (*Context, error) {
	c := f.Context(name)
	switch {
	case c == nil:
		var names []string
		for i := range f.Contexts {
			names = append(names, f.Contexts[i].Name)
		}
		return nil, fmt.Errorf("context %q does not exist in the kubeconfig; choose one of: %s", name, strings.Join(names, ", "))
	case c.Problem != "":
		return nil, fmt.Errorf("context %s: %s", name, c.Problem)
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

// Management asks which cluster has the management plane.
func (f *Fleet) Management() (*Context, error) {
	if was := f.Answers[ManagementFlag]; len(was) > 0 {
		return f.need(was[0])
	}
	usable, err := f.usable()
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
	name, err := f.Select(Question{Text: "Which cluster is the management cluster?", Help: "It stores the policies and the discovered objects. It can be managed itself."}, options, preset.Name)
	if err != nil {
		return nil, err
	}
	f.Answers[ManagementFlag] = []string{name}
	return f.Context(name), nil
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

// Members asks which clusters shall be managed, and what each is called. Those
// that are registered already are told of.
func (f *Fleet) Members(management *Context) ([]Member, error) {
	if _, given := f.Answers[RegisterFlag]; given {
		return f.members(management)
	}
	usable, err := f.usable()
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
			f.Say(clean(fmt.Sprintf("Already registered: %s (context %s)\n", name, c.Name)))
		case seen[c.UID] != "":
			f.Say(clean(fmt.Sprintf("Context %s leads to the same cluster as %s.\n", c.Name, seen[c.UID])))
		default:
			options = append(options, Option{Value: c.Name, Text: c.label()})
			all = append(all, c.Name)
			seen[c.UID] = c.Name
		}
	}
	picked, asked := f.Answers["?contexts"]
	if !asked && len(options) > 0 {
		if picked, err = f.MultiSelect(Question{Text: "Which clusters do you want to register?"}, options, all); err != nil {
			return nil, err
		}
		f.Answers["?contexts"] = picked
	}
	pairs := []string{}
	taken := slices.Collect(maps.Keys(management.Members))
	for _, name := range picked {
		pair, err := f.askName(name, taken)
		if err != nil {
			return nil, err
		}
		taken = append(taken, pair.Name)
		pairs = append(pairs, pair.String())
	}
	f.Answers[RegisterFlag] = pairs
	delete(f.Answers, "?contexts")
	for _, name := range picked {
		delete(f.Answers, "?name of "+name)
	}
	return f.members(management)
}

// String is the value of RegisterFlag.
func (m Member) String() string { return m.Context + "=" + m.Name }

// One asks for one cluster to register, and for its name; a name that is given
// is not asked for.
func (f *Fleet) One(management *Context, context, name string) (Member, error) {
	usable, err := f.usable()
	if err != nil {
		return Member{}, err
	}
	if was := f.Answers["?context"]; context == "" && len(was) > 0 {
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
		if context, err = f.Select(Question{Text: "Which cluster do you want to register?"}, options, preset); err != nil {
			return Member{}, err
		}
		f.Answers["?context"] = []string{context}
	}
	c, err := f.need(context)
	if err != nil {
		return Member{}, err
	}
	if known := registered(management, c); known != "" && (name == "" || name == known) {
		f.Say(clean(fmt.Sprintf("It is already registered as %s; registering it again repairs what is broken, and renews a credential that is about to expire.\n", known)))
		return Member{Context: context, Name: known, Registered: true}, nil
	}
	if name != "" {
		return Member{Context: context, Name: name}, nil
	}
	return f.askName(context, slices.Collect(maps.Keys(management.Members)))
}

// Forget drops the answers of One, to ask again.
func (f *Fleet) Forget() {
	for _, context := range f.Answers["?context"] {
		delete(f.Answers, "?name of "+context)
	}
	delete(f.Answers, "?context")
}

// Retry tells of an error, and asks whether to try again.
func (f *Fleet) Retry(err error, options ...Option) (string, error) {
	f.Say(clean(err.Error()) + "\n")
	options = append(append([]Option{{"again", "try again"}}, options...), Option{"stop", "stop here"})
	return f.Select(Question{Text: "The check failed, and nothing was written. What next?"}, options, "again")
}

// Agree asks a question of yes or no.
func (f *Fleet) Agree(question string) (bool, error) {
	answer, err := f.Select(Question{Text: question}, []Option{{"yes", "yes"}, {"no", "no"}}, "yes")
	return answer == "yes", err
}

// askName asks what a cluster is called.
func (f *Fleet) askName(context string, taken []string) (Member, error) {
	key := "?name of " + context
	if was := f.Answers[key]; len(was) > 0 {
		return Member{Context: context, Name: was[0]}, nil
	}
	q := Question{Text: fmt.Sprintf("Name for the cluster of context %s?", clean(context)), Help: "Policies refer to the cluster by this name."}
	name, err := f.Input(q, SuggestName(context, taken), func(name string) error {
		switch {
		case len(validation.IsDNS1123Label(name)) > 0:
			return fmt.Errorf("cluster name %q: use at most 63 lower-case letters, digits and hyphens", name)
		case slices.Contains(taken, name):
			return fmt.Errorf("another cluster is already named %s; choose another name", name)
		}
		return nil
	})
	if err == nil {
		f.Answers[key] = []string{name}
	}
	return Member{Context: context, Name: name}, err
}

// members reads RegisterFlag: CONTEXT=NAME, or CONTEXT for the name suggested.
func (f *Fleet) members(management *Context) ([]Member, error) {
	var out []Member
	taken := slices.Collect(maps.Keys(management.Members))
	for _, value := range f.Answers[RegisterFlag] {
		m := Member{Context: value}
		if at := strings.LastIndex(value, "="); at >= 0 && f.Context(value) == nil {
			m.Context, m.Name = value[:at], value[at+1:]
		}
		c, err := f.need(m.Context)
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

// SuggestName makes a name for a cluster of the name of its context. What
// clouds and kind put before it is left out.
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
