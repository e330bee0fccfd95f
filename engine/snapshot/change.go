package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ChangeKind says what a Change is about.
type ChangeKind string

// The kinds of changes.
const (
	// The changes for traffic are those of explain.EffectKind, but for how much proxies hold.
	ChangeAccess   ChangeKind = "access"
	ChangeReach    ChangeKind = "reach"
	ChangeRoute    ChangeKind = "route"
	ChangeSetting  ChangeKind = "setting"
	ChangeLocality ChangeKind = "locality"
	ChangeHosts    ChangeKind = "hosts"
	ChangeTrust    ChangeKind = "trust"
	// ChangeEdited: a user created, edited or deleted an object, and that alone changed nothing for traffic.
	ChangeEdited ChangeKind = "edited"
	// ChangeReverted: a generated object was changed by somebody else in a cluster, and was put back.
	ChangeReverted ChangeKind = "reverted"
	// ChangeRefused: an object that follows could not be written.
	ChangeRefused ChangeKind = "refused"
	// ChangeProblem: something that carries traffic is not there any more, and ChangeRepaired: it is again.
	ChangeProblem  ChangeKind = "problem"
	ChangeRepaired ChangeKind = "repaired"
	// ChangeClusterLost: a cluster cannot be read, and ChangeClusterFound: it can be again.
	ChangeClusterLost  ChangeKind = "clusterLost"
	ChangeClusterFound ChangeKind = "clusterFound"
	// ChangeClusterAdded: a cluster was registered, and ChangeClusterRemoved: it is registered no more.
	ChangeClusterAdded   ChangeKind = "clusterAdded"
	ChangeClusterRemoved ChangeKind = "clusterRemoved"
	// ChangeLeader: another serve leads, or the same one anew.
	ChangeLeader ChangeKind = "leader"
	// ChangeCredential: the credential of a cluster was renewed.
	ChangeCredential ChangeKind = "credential"
	// ChangeRoot: a VirtualMesh has another root to sign with.
	ChangeRoot ChangeKind = "root"
	// ChangeMore: more changed than is listed.
	ChangeMore ChangeKind = "more"
	// ChangeRecord: the record itself could not be read, and begins anew.
	ChangeRecord ChangeKind = "record"
)

// Change is an entry of the timeline that serve keeps: something that changed for traffic, or about the
// management plane, and because of what.
type Change struct {
	// Time is when it was seen, the last time if it was seen several times; UTC, in seconds.
	Time time.Time  `json:"time"`
	Kind ChangeKind `json:"kind"`
	// Code is that of the issue, if it is a problem or its repair.
	Code Code `json:"code,omitempty"`
	// On is what changed; zero for the management plane as a whole.
	On Ref `json:"on,omitzero"`
	// Called is the source of a discovered object: NAME.NAMESPACE.CLUSTER.
	Called string `json:"called,omitempty"`
	// Cluster that it is about; empty if it is about all or none.
	Cluster string `json:"cluster,omitempty"`
	// What changed, as a clause without the name of the object; of several, the first ones.
	What string `json:"what"`
	// Harm: requests fail that did not before.
	Harm bool `json:"harm,omitempty"`
	// Causes are what it followed from, as far as that is known; bounded by MaxChangeCauses.
	Causes []ChangeCause `json:"causes,omitempty"`
	// Times is how often the same was seen in a short time; 0 is once.
	Times int `json:"times,omitempty"`
}

// ChangeCause is what a Change followed from.
type ChangeCause struct {
	// Kind is that of a Change which it would be without consequences: edited, problem, clusterLost, ...
	// It is observed for objects that are not users' wishes, such as pods.
	Kind ChangeKind `json:"kind"`
	// Code is that of the issue, if it is a problem or its repair.
	Code Code `json:"code,omitempty"`
	// On is the object.
	On Ref `json:"on,omitzero"`
	// What was done or happened, as a verb: edited, created, deleted.
	What string `json:"what,omitempty"`
	// By is the field manager that did it (Kubernetes: Server-Side Apply), and Operation how, Apply or
	// Update; empty if that is not known.
	By        string `json:"by,omitempty"`
	Operation string `json:"operation,omitempty"`
}

// ChangeObserved is the kind of causes that are objects in clusters.
const ChangeObserved ChangeKind = "observed"

const (
	// ChangesRecord is the ConfigMap, in the management plane's namespace, with the timeline.
	ChangesRecord = "meshctl-changes"
	// ChangesKey is the key of the timeline in ChangesRecord.
	ChangesKey = "changes.json"
	// MaxChanges is how many entries are kept.
	MaxChanges = 500
	// MaxChangesSize is how many bytes they may have as JSON.
	MaxChangesSize = 448 << 10
	// ChangesLast is how long each one is kept.
	ChangesLast = 24 * time.Hour
	// MaxChangeText bounds a text of an entry, in bytes.
	MaxChangeText = 400
	// MaxChangeCauses bounds the causes of an entry.
	MaxChangeCauses = 3
	// changeRepeats is for how long the same is counted instead of listed again.
	changeRepeats = 10 * time.Minute
)

// Changes is a timeline, the oldest entry first.
type Changes []Change

// ParseChanges reads what Changes.JSON made. Nothing is an empty timeline.
func ParseChanges(text string) (Changes, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > 2*MaxChangesSize {
		return nil, fmt.Errorf("the record of changes has %d bytes, more than was ever written", len(text))
	}
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, fmt.Errorf("the record of changes is damaged: %w", err)
	}
	entries = entries[max(0, len(entries)-MaxChanges):]
	out := make(Changes, 0, len(entries))
	for _, entry := range entries {
		var c Change
		if json.Unmarshal(entry, &c) != nil {
			continue // a later version may have written it
		}
		c.bound()
		out = append(out, c)
	}
	return out, nil
}

// With adds an entry. The same as before, a short time ago, counts as one; the oldest entries go.
func (c Changes) With(add Change) Changes {
	add.Time = add.Time.UTC().Truncate(time.Second)
	add.bound()
	out := make(Changes, 0, len(c)+1)
	for i := range c {
		old := &c[i]
		switch {
		case add.Time.Sub(old.Time) > ChangesLast:
		case old.same(&add) && add.Time.Sub(old.Time) < changeRepeats:
			add.Times = max(old.Times, 1) + max(add.Times, 1)
		default:
			out = append(out, *old)
		}
	}
	out = append(out, add)
	return out[max(0, len(out)-MaxChanges):]
}

// Since are the entries from a time on.
func (c Changes) Since(at time.Time) Changes {
	return slices.DeleteFunc(slices.Clone(c), func(e Change) bool { return e.Time.Before(at) })
}

// JSON is the form that ParseChanges reads. The oldest entries are left out if there is no room.
func (c Changes) JSON() (string, error) {
	size := 2
	from := len(c)
	for ; from > 0; from-- {
		text, err := json.Marshal(&c[from-1])
		if err != nil {
			return "", fmt.Errorf("record of changes: %w", err)
		}
		if size += len(text) + 1; size > MaxChangesSize {
			break
		}
	}
	text, err := json.Marshal(c[from:])
	if err != nil {
		return "", fmt.Errorf("record of changes: %w", err)
	}
	return string(text), nil
}

// same reports whether two entries say the same of the same object.
func (c *Change) same(o *Change) bool {
	return c.Kind == o.Kind && c.On == o.On && c.What == o.What && c.Cluster == o.Cluster && slices.Equal(c.Causes, o.Causes)
}

// bound bounds all texts.
func (c *Change) bound() {
	for _, text := range []*string{&c.Called, &c.Cluster, &c.What} {
		*text = CutText(*text, MaxChangeText)
	}
	c.Causes = slices.Clone(c.Causes[:min(len(c.Causes), MaxChangeCauses)])
	for i := range c.Causes {
		cause := &c.Causes[i]
		for _, text := range []*string{&cause.What, &cause.By, &cause.Operation} {
			*text = CutText(*text, MaxChangeText/2)
		}
	}
}

// CutText is a text of at most so many bytes, ending in an ellipsis if it is cut.
func CutText(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// Name is what people call the object that changed: reviews in cluster-1, TrafficPolicy reviews-shift.
func (c *Change) Name() string {
	name, rest, _ := strings.Cut(c.Called, ".")
	switch {
	case c.Called != "" && c.Cluster != "":
		return name + " in " + c.Cluster
	case c.Called != "":
		return name + "." + rest
	case c.On == Ref{}:
		return ""
	case c.On.Kind == KubernetesCluster:
		return "cluster " + c.On.Name
	}
	return c.On.String()
}

// Because says what it followed from; empty if that is not known.
func (c *Change) Because() string {
	parts := make([]string, len(c.Causes))
	for i := range c.Causes {
		parts[i] = c.Causes[i].text()
	}
	return strings.Join(parts, ", and ")
}

func (c *ChangeCause) text() string {
	text := c.What
	if c.On != (Ref{}) {
		text = c.On.String()
		if c.On.Kind == KubernetesCluster {
			text = "cluster " + c.On.Name
		}
		text += " " + c.What
	}
	if c.By != "" {
		text += " by " + c.By
	}
	return text
}

// Text is the change as a sentence without a period, with its causes.
func (c *Change) Text() string {
	text := c.What
	if name := c.Name(); name != "" {
		sep := ": "
		if c.verbal() {
			sep = " "
		}
		text = name + sep + c.What
	}
	if c.Times > 1 {
		text += fmt.Sprintf(" (%d times)", c.Times)
	}
	if because := c.Because(); because != "" {
		text += ", because " + because
	}
	return text
}

// verbal reports whether What continues the name of the object as a sentence.
func (c *Change) verbal() bool {
	switch c.Kind {
	case ChangeEdited, ChangeRefused, ChangeReverted, ChangeClusterLost, ChangeClusterFound, ChangeClusterAdded, ChangeClusterRemoved, ChangeRoot, ChangeCredential:
		return true
	}
	return false
}

// Matches reports whether the change is about an object that a person calls by a name, as describe takes
// it: its name, NAMESPACE/NAME, or that of what it was discovered from. It is also about what caused it,
// and about its cluster.
func (c *Change) Matches(name string) bool {
	if c.Cluster == name || c.Called == name || strings.HasPrefix(c.Called, name+".") || c.On.named(name) {
		return true
	}
	return slices.ContainsFunc(c.Causes, func(cause ChangeCause) bool { return cause.On.named(name) })
}

func (r Ref) named(name string) bool {
	return r.Name != "" && (r.Name == name || r.Namespace+"/"+r.Name == name)
}
