package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// folder is a folder being read.
type folder struct {
	name string
	// cluster is the name in references: empty for the management plane.
	cluster string
	side    snapshot.Side
	lists   snapshot.ObjectLists
	// objects are those that were read.
	objects map[snapshot.Kind][]snapshot.APIObject
	// self reads documents that describe the folder, by kind.
	self map[string]func(document) error
	// overlay names the documents that are not in the folder itself.
	overlay overlay
	// refuse is the option of the document Management, and webhooksUnknown that of the document
	// Cluster; nil if it does not say.
	refuse, webhooksUnknown *bool
	// recorded and served are those of a Snapshot, by the document Management.
	recorded time.Time
	served   bool
	// seen has the place of every object read.
	seen map[snapshot.Ref]place
	// left counts the objects of kinds that the engine does not read.
	left map[schema.GroupVersionKind]int
	// stored reports kinds that have a CRD, whether or not the engine reads them.
	stored func(schema.GroupVersionKind) bool
}

// selfGroup is the apiVersion of documents that describe a folder.
var selfGroup = schema.GroupVersion{Group: "offline", Version: "v1"}

func clusterFolder(c *snapshot.Cluster) *folder {
	f := newFolder(c.Name, snapshot.ManagedSide, c)
	f.cluster = c.Name
	f.self["Cluster"] = func(doc document) error { return describeCluster(doc, c, &f.webhooksUnknown) }
	return f
}

func managementFolder(input *snapshot.Input) *folder {
	f := newFolder(ManagementFolder, snapshot.ManagementSide, input.Management)
	f.self["Management"] = func(doc document) error { return describeManagement(doc, input, f) }
	return f
}

func newFolder(name string, side snapshot.Side, lists snapshot.ObjectLists) *folder {
	return &folder{
		name: name, side: side, lists: lists, self: map[string]func(document) error{},
		objects: map[snapshot.Kind][]snapshot.APIObject{}, seen: map[snapshot.Ref]place{},
		left: map[schema.GroupVersionKind]int{}, stored: scheme.New().Recognizes,
	}
}

// loadFolder reads all files of f, in the order of their names.
func loadFolder(fsys fs.FS, f *folder) ([]snapshot.Issue, error) {
	documents, errs := readDocuments(fsys, f.name)
	documents = slices.DeleteFunc(documents, func(doc document) bool {
		if doc.gvk.GroupVersion() != selfGroup {
			return false
		}
		errs = append(errs, f.describe(doc))
		return true
	})
	documents, bad := f.overlay.apply(fsys, f.name, documents)
	errs = append(errs, bad...)
	for _, doc := range documents {
		errs = append(errs, f.read(doc))
	}
	for kind, objects := range f.objects {
		slices.SortStableFunc(objects, snapshot.CompareNames)
		errs = append(errs, f.lists.List(kind).Set(objects))
	}
	return f.leftOut(), errors.Join(errs...)
}

// describe takes a document that describes the folder.
func (f *folder) describe(doc document) error {
	describe, ok := f.self[doc.gvk.Kind]
	if !ok {
		return doc.at.errorf([]string{"kind"}, "kind %s does not describe the folder %s; a cluster's folder takes Cluster, the folder %s takes Management",
			doc.gvk.Kind, f.name, ManagementFolder)
	}
	if err := describe(doc); err != nil {
		return err
	}
	var d struct {
		Spec overlay `json:"spec"`
	}
	if err := decode(doc, &d, false); err != nil || d.Spec.empty() {
		return err
	}
	if !f.overlay.empty() {
		return doc.at.errorf([]string{"spec"}, "%s names bases already; name all of them there", f.overlay.at.file)
	}
	f.overlay = d.Spec
	f.overlay.at = doc.at
	return nil
}

// read adds the object of a document to its list.
func (f *folder) read(doc document) error {
	kind, known := snapshot.KindOf(doc.gvk.GroupKind())
	switch {
	case !known && ourGroup(doc.gvk.Group) && !f.stored(doc.gvk):
		return doc.at.errorf([]string{"kind"}, "group %s has no kind %s; correct the spelling", doc.gvk.Group, doc.gvk.Kind)
	case !known:
		f.left[doc.gvk]++
		return nil
	case kind.Info().Side != f.side && kind.Info().Access != 0 && kind.Info().Access&snapshot.InClusters == 0 && f.side == snapshot.ManagedSide:
		return doc.at.errorf([]string{"kind"}, "a %s belongs to the management plane; move it to the folder %s", kind, ManagementFolder)
	}
	list := f.lists.List(kind)
	if list == nil {
		f.left[doc.gvk]++
		return nil
	}
	if want := kind.Info().GroupVersion(); !kind.Info().Has(doc.gvk.Version) {
		return doc.at.errorf([]string{"apiVersion"}, "%s is read as %s, not as %s; convert it", kind, want, doc.gvk.GroupVersion())
	}
	o := list.New()
	if err := decode(doc, o, ourGroup(doc.gvk.Group)); err != nil {
		return err
	}
	// As an informer gives it.
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	f.objects[kind] = append(f.objects[kind], o)
	return f.register(kind, doc, o)
}

// register checks that the object has a name of its own.
func (f *folder) register(kind snapshot.Kind, doc document, o snapshot.APIObject) error {
	switch {
	case o.GetName() == "":
		return doc.at.errorf([]string{"metadata"}, "%s has no name; add metadata.name", kind)
	case o.GetNamespace() == "" && !kind.Info().ClusterScoped:
		return doc.at.errorf([]string{"metadata"}, "%s %s has no namespace; add metadata.namespace", kind, o.GetName())
	}
	ref := snapshot.RefOf(kind, o)
	ref.Cluster = f.cluster
	if first, twice := f.seen[ref]; twice {
		return doc.at.errorf([]string{"metadata"}, "%s is in %s:%d already; remove one of them", ref, first.file, first.line(first.path))
	}
	f.seen[ref] = doc.at
	return nil
}

// leftOut reports, for each kind, how many objects were left out.
func (f *folder) leftOut() []snapshot.Issue {
	var issues []snapshot.Issue
	for _, gvk := range slices.SortedFunc(maps.Keys(f.left), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }) {
		issues = append(issues, snapshot.Issue{
			Code:     snapshot.KindUnsupported,
			Severity: snapshot.Info,
			Ref:      snapshot.Ref{Cluster: f.name},
			Message:  fmt.Sprintf("%d of kind %s (%s) are not read from the folder %s", f.left[gvk], gvk.Kind, gvk.GroupVersion(), f.name),
		})
	}
	return issues
}

// ourGroup reports whether a group's kinds are defined by meshctl, so that an
// unknown kind or field in it is a mistake.
func ourGroup(group string) bool {
	return strings.HasSuffix(group, ".mesh.gloo.solo.io") || group == "multicluster.solo.io"
}
