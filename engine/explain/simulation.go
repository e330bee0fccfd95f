package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Simulation says who answers after an outage.
type Simulation struct {
	// Verdict is all of it in a line.
	Verdict string `json:"verdict"`
	// Lost are what is assumed not to answer.
	Lost []Loss `json:"lost"`
	// Services are those of whose requests others are answered than before, or by others, ascending.
	Services []ServiceOutage `json:"services"`
	// Gateways are those for calls between clusters that are lost, ascending.
	Gateways []snapshot.Ref `json:"gateways"`
	// FailoverOff is what does not take over, ascending.
	FailoverOff []FailoverOff `json:"failoverOff"`
	// Issues are the requests that nobody answers, each with a next step.
	Issues []snapshot.Issue `json:"issues"`
	// Notes are sentences on what was assumed.
	Notes []string `json:"notes"`

	// at are the entries of a service.
	at map[snapshot.Ref][]int
}

// ServiceOutage is who answers some requests to a service before and after.
type ServiceOutage struct {
	// Service is a Destination or a VirtualDestination.
	Service snapshot.Ref `json:"service"`
	// From are the meshes of the callers, ascending.
	From []snapshot.Ref `json:"from"`
	// Requests says in words which; "any" is all.
	Requests string      `json:"requests"`
	Before   []Responder `json:"before"`
	After    []Responder `json:"after"`
	// Unanswered is the share of the requests that somebody answered before and nobody answers after, in percent.
	Unanswered float64 `json:"unanswered,omitempty"`

	policies []snapshot.Ref
}

// FailoverOff is a service whose requests do not go elsewhere, or not any more, when its pods fail.
type FailoverOff struct {
	Service snapshot.Ref `json:"service"`
	Why     string       `json:"why"`
}

// Simulate says who answers after an outage. Build makes an Index like x.
func Simulate(x *Index, losses []Loss, build func(*snapshot.State) *Index) *Simulation {
	o := NewOutage(x, losses)
	y := o.Index(build)
	out := &Simulation{Lost: o.Losses, Services: []ServiceOutage{}, Gateways: sortedRefs(o.gateways), FailoverOff: []FailoverOff{}, Issues: []snapshot.Issue{}, at: map[snapshot.Ref][]int{}}
	for _, mesh := range x.state.Plan.Meshes {
		if o.clusters[mesh.Cluster] {
			continue // nobody is left to ask
		}
		for _, ref := range sortedRefs(x.destinations) {
			d := x.destinations[ref]
			if d.Mesh == nil || !reaches(mesh, d) || isPassage(x, ref) {
				continue
			}
			before, after := answersOf(x, mesh, d), answersOf(y, mesh, y.destinations[ref])
			for i := range min(len(before), len(after)) {
				out.add(ref, mesh.Ref, before[i], after[i])
			}
		}
		for _, ref := range sortedRefs(x.virtualDestinations) {
			if v := x.virtualDestinations[ref]; v.Sees(mesh) {
				a := Responder{Destination: ref, Share: whole}
				out.add(ref, mesh.Ref, answersTo{requests: anyRequest, answers: endsAt(x, mesh, a)}, answersTo{requests: anyRequest, answers: endsAt(y, mesh, a)})
				out.addFailover(y, mesh, v)
			}
		}
	}
	slices.SortStableFunc(out.Services, func(a, b ServiceOutage) int {
		return cmp.Or(-cmp.Compare(a.Unanswered, b.Unanswered), a.Service.Compare(b.Service))
	})
	out.addPartial(y)
	out.addIssues(y)
	out.Notes = o.notes(x)
	out.Verdict = out.verdict()
	return out
}

// add notes who answers some requests, if that changes. Callers of several meshes with the same answers are one entry.
func (s *Simulation) add(service, mesh snapshot.Ref, before, after answersTo) {
	if sameAnswers(before.answers, after.answers) {
		return
	}
	for _, i := range s.at[service] {
		if o := &s.Services[i]; o.Requests == before.requests && sameAnswers(o.Before, before.answers) && sameAnswers(o.After, after.answers) {
			o.From = append(o.From, mesh)
			return
		}
	}
	s.at[service] = append(s.at[service], len(s.Services))
	s.Services = append(s.Services, ServiceOutage{
		Service: service, From: []snapshot.Ref{mesh}, Requests: before.requests, Before: before.answers, After: after.answers,
		Unanswered: max(0, unanswered(after.answers)-unanswered(before.answers)), policies: before.policies,
	})
}

// addFailover says of a VirtualDestination that nothing is left to fail over to.
func (s *Simulation) addFailover(y *Index, mesh *snapshot.MeshPlan, v *snapshot.VirtualDestinationPlan) {
	answering, all := 0, 0
	for _, view := range v.Views {
		if view.Mesh.Ref != mesh.Ref {
			continue
		}
		for _, p := range view.Priorities {
			for _, t := range p.Targets {
				all++
				if d := y.destinations[t.Backing.Ref]; d != nil && d.Mesh != nil && virtualReady(y, mesh, v, d, "", t.Through) > 0 {
					answering++
				}
			}
		}
	}
	var why string
	switch {
	case all == 1:
		why = "one service only is behind it for callers in mesh " + mesh.Ref.Name
	case answering == 1:
		why = fmt.Sprintf("of the %d services behind it, one answers callers in mesh %s: the next failure has no backup", all, mesh.Ref.Name)
	case answering == 0:
		why = "none of the services behind it answers callers in mesh " + mesh.Ref.Name
	default:
		return
	}
	s.FailoverOff = append(s.FailoverOff, FailoverOff{v.Ref, why})
}

// addPartial names services of which some pods are left, and whose callers do not avoid pods that fail.
func (s *Simulation) addPartial(y *Index) {
	seen := map[snapshot.Ref]bool{}
	for i := range s.Services {
		o := &s.Services[i]
		d := y.destinations[o.Service]
		if d == nil || seen[o.Service] || o.Unanswered > 0 || len(endpointsOf(d, nil)) == 0 {
			continue
		}
		seen[o.Service] = true
		if !slices.ContainsFunc(d.Views, func(v *snapshot.View) bool { return v.Outlier != nil }) {
			s.FailoverOff = append(s.FailoverOff, FailoverOff{o.Service, "no TrafficPolicy sets outlierDetection: pods that fail and count as ready go on getting their share"})
		}
	}
	slices.SortStableFunc(s.FailoverOff, func(a, b FailoverOff) int { return a.Service.Compare(b.Service) })
}

// addIssues makes an issue of each entry with requests that nobody answers.
func (s *Simulation) addIssues(y *Index) {
	for i := range s.Services {
		o := &s.Services[i]
		if o.Unanswered == 0 {
			continue
		}
		var gone []string
		for _, a := range o.After {
			if a.Ready != nil && *a.Ready == 0 {
				name := a.Destination.Name
				if a.Subset != "" {
					name += " (" + a.Subset + ")"
				}
				gone = append(gone, name)
			}
		}
		why := "no pod of " + firstOf(gone) + " answers"
		if len(o.Before) > 1 && len(gone) < len(o.After) {
			why += ", and shares of a traffic shift do not move to other targets"
		}
		s.Issues = append(s.Issues, snapshot.Errorf(snapshot.NoEndpoints, o.backup(y), "from %s, nobody answers %s of %s: %s",
			meshNames(o.From), snapshot.Percent(o.Unanswered), o.requests(), why).On(o.Service, snapshot.Ref{}))
	}
}

// requests are those that it is about, in words.
func (o *ServiceOutage) requests() string {
	if o.Requests == anyRequest {
		return allRequests
	}
	return "requests (" + o.Requests + ")"
}

// backup is the next step for requests that nobody answers.
func (o *ServiceOutage) backup(y *Index) string {
	if o.Service.Kind == snapshot.VirtualDestination {
		return "run one of the services behind it in another cluster, and select it in the VirtualDestination"
	}
	if len(o.Before) > 1 && len(o.policies) > 0 {
		return "give the share to another target in " + kindAndName(o.policies[0]) + ", or shift to a VirtualDestination, which fails over"
	}
	d := y.destinations[o.Service]
	if d == nil || d.Destination.Spec.KubeService == nil {
		return "give it a backup in another cluster"
	}
	for _, v := range y.state.Plan.VirtualDestinations {
		if len(v.Backing) > 1 && slices.ContainsFunc(v.Backing, func(b *snapshot.BackingPlan) bool { return b.Ref == o.Service }) {
			return "call it as " + v.Hostname + ": " + kindAndName(v.Ref) + " fails over"
		}
	}
	service := d.Destination.Spec.KubeService.Ref
	for _, ref := range sortedRefs(y.destinations) {
		other := y.destinations[ref]
		k := other.Destination.Spec.KubeService
		if ref != o.Service && k != nil && k.Ref.Name == service.Name && k.Ref.Namespace == service.Namespace && len(endpointsOf(other, nil)) > 0 {
			return "declare a VirtualDestination with it and " + ref.Name + ", and call its host: then requests go there"
		}
	}
	return "run it in another cluster, too, and declare a VirtualDestination with both, which fails over"
}

// notes say what was assumed.
func (o *Outage) notes(x *Index) []string {
	notes := []string{"what was written last stays in force, as in an outage", "requests that wait for outlier detection to exclude what does not answer fail until then"}
	for _, c := range o.unsure {
		notes = append(notes, "cluster "+c+": which of its pods are in which region is not known, so that the region of most pods of a service counts")
	}
	if not := x.NotRead(); not != "" {
		notes = append(notes, "not read: "+not)
	}
	for _, c := range x.state.Input.Clusters {
		if reason := x.frozenReason(c.Name); reason != "" && !o.clusters[c.Name] {
			notes = append(notes, "cluster "+c.Name+" is not watched ("+reason+"): this is what was last seen of it")
		}
	}
	return notes
}

func (s *Simulation) verdict() string {
	lost := make([]string, len(s.Lost))
	for i := range s.Lost {
		lost[i] = s.Lost[i].Text()
	}
	without, others, moved := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}, 0
	for i := range s.Services {
		if o := &s.Services[i]; o.Unanswered > 0 {
			without[o.Service] = true
		} else {
			others[o.Service] = true
		}
	}
	for ref := range others {
		if !without[ref] {
			moved++
		}
	}
	text := "without " + strings.Join(lost, ", ") + ": "
	switch {
	case len(without) > 0 && moved > 0:
		return fmt.Sprintf("%s%s without backup, %s answered by what is left", text, snapshot.Count(len(without), "service"), snapshot.Count(moved, "service"))
	case len(without) > 0:
		return text + snapshot.Count(len(without), "service") + " without backup"
	case moved > 0:
		return text + snapshot.Count(moved, "service") + " answered by what is left"
	}
	return text + "who answers stays the same"
}
