package create

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// FullNames replaces what people call services, meshes and VirtualMeshes in answers, such as reviews, http://reviews:9080 or the cluster
// of a mesh, by what the manifest has, as `meshctl describe` finds them.
func FullNames(catalog *wizards.Catalog, form *wizards.Form, answers wizards.Answers) error {
	for i := range form.Fields {
		field := &form.Fields[i]
		values := slices.Clone(answers[field.Flag])
		for j, text := range values {
			var err error
			switch {
			case field.NamesServices():
				values[j], err = service(catalog, text)
			case field.Names() != snapshot.NoKind:
				values[j], err = namespaced(catalog, field.Names(), text)
			}
			if err != nil {
				return cmdutil.FlagErrorf("--%s: %w", field.Flag, err)
			}
		}
		if len(values) > 0 {
			answers[field.Flag] = values
		}
	}
	return nil
}

// service is name.namespace.cluster, for what people call a service, with what follows it after a comma.
func service(catalog *wizards.Catalog, text string) (string, error) {
	name, rest, more := strings.Cut(text, ",")
	name = host(name)
	if name == "" || strings.ContainsAny(name, "=\"") || strings.Count(name, ".") == 2 {
		if more {
			name += "," + rest
		}
		return name, nil
	}
	ref, err := cmdutil.Pick(catalog.Index(), snapshot.Destination, name)
	if err != nil && strings.Count(name, ".") > 2 {
		// A host name, such as reviews.bookinfo.svc.cluster-1.global.
		ref, err = ofHost(catalog, name, err)
	}
	if err != nil {
		return "", err
	}
	called := catalog.Index().Called(ref)
	if len(called) == 0 {
		return "", cmdutil.FlagErrorf("%s is no Service of a cluster; name one as NAME.NAMESPACE.CLUSTER", name)
	}
	full := called[len(called)-1]
	if more {
		full += "," + rest
	}
	return full, nil
}

// ofHost is the service that callers reach by a host name; err if there is none.
func ofHost(catalog *wizards.Catalog, name string, err error) (snapshot.Ref, error) {
	var found []snapshot.Ref
	var called []string
	for _, caller := range catalog.Index().Refs(snapshot.Workload) {
		for _, ref := range catalog.Index().FindCalled(caller, name) {
			if ref.Kind == snapshot.Destination && !slices.Contains(found, ref) {
				found, called = append(found, ref), append(called, ref.Name)
			}
		}
	}
	switch len(found) {
	case 0:
		return snapshot.Ref{}, err
	case 1:
		return found[0], nil
	}
	return snapshot.Ref{}, cmdutil.FlagErrorf("%s is ambiguous; choose one of: %s", name, strings.Join(called, ", "))
}

// host is the host of a URL, or of HOST:PORT; what is neither stays.
func host(text string) string {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return u.Hostname()
	}
	if name, port, ok := strings.Cut(text, ":"); ok {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			return name
		}
	}
	return text
}

// namespaced is namespace/name of the object that people mean.
func namespaced(catalog *wizards.Catalog, kind snapshot.Kind, text string) (string, error) {
	if strings.Contains(text, "/") {
		return text, nil
	}
	ref, err := PickNamespaced(catalog.Index(), kind, "", text)
	if err != nil {
		return "", err
	}
	return ref.Namespace + "/" + ref.Name, nil
}

// PickNamespaced finds the one object of a namespace that a name means; of any namespace if it is empty. A mesh can be
// called by its cluster.
func PickNamespaced(index *explain.Index, kind snapshot.Kind, namespace, name string) (snapshot.Ref, error) {
	clusters := map[snapshot.Ref]string{}
	for _, m := range index.MeshPlans() {
		clusters[m.Ref] = m.Cluster
	}
	var found []snapshot.Ref
	for _, ref := range index.Refs(kind) {
		called := ref.Name == name || ref.Namespace+"/"+ref.Name == name || kind == snapshot.Mesh && clusters[ref] == name
		if called && (namespace == "" || ref.Namespace == namespace) {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		ref, err := cmdutil.Pick(index, kind, name)
		if err == nil && namespace != "" && ref.Namespace != namespace {
			return ref, cmdutil.NotFoundErrorf("%s %q not found in namespace %s; there is one in: -n %s", strings.ToLower(kind.String()), name, namespace, ref.Namespace)
		}
		return ref, err
	}
	names := make([]string, 0, len(found))
	for _, ref := range found {
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	return snapshot.Ref{}, cmdutil.FlagErrorf("%s is ambiguous; choose one of: %s", name, strings.Join(names, ", "))
}
