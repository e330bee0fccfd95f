package help

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// gitopsIntro is about policies that are kept in Git.
const gitopsIntro = `Policies, VirtualMeshes and Settings are Kubernetes objects in the management
cluster. Whatever applies them there from Git does for meshctl: nothing has to
be installed for it, and meshctl never edits what is in their spec.

Before a merge, "meshctl plan" says what a change does to traffic, and fails if
you want it to:

  meshctl plan -f policies                             for people
  meshctl plan -f policies -o markdown                 for a comment
  meshctl plan -f policies --fail-on access-lost       for a gate

It asks the management cluster, or nothing but a file that "meshctl debug
snapshot" wrote, with --snapshot.

After a merge, status.conditions of each object say what became of it. kstatus,
which Flux, Helm and others use, understands them:

  Accepted      it is valid, and accepted on all that it selects
  InForce       what follows from it was written to all clusters concerned
  Ready         both
  Stalled       somebody has to do something; the message says what
  Reconciling   it gets ready by itself, for example when a cluster answers

"meshctl wait" waits for them, and "meshctl export" writes what is there now.

Argo CD reads conditions only of kinds for which it has a health check; without
one, a policy that was rejected is green. Files to start from:

%s
Print one with "meshctl help gitops NAME", and change names and addresses.`

// gitopsFiles are the files that the topic names.
//
//go:embed gitops
var gitopsFiles embed.FS

// gitopsShort says what each of them is.
var gitopsShort = map[string]string{
	"argocd-cm.yaml": "the health check for Argo CD, a patch of its ConfigMap",
	"argocd.yaml":    "an Application for Argo CD",
	"flux.yaml":      "a Kustomization for Flux, which waits for the policies",
	"github.yaml":    "a workflow for GitHub that plans each pull request",
}

func gitopsTopic() topic {
	return topicWithFiles("gitops", "Policies from Git: Argo CD, Flux, and a check of pull requests", gitopsIntro, gitopsFiles, gitopsShort)
}

// topicWithFiles is a topic whose introduction lists the files of the folder of its name, with what each of them is.
func topicWithFiles(name, short, intro string, files embed.FS, shorts map[string]string) topic {
	t := topic{name: name, short: short}
	var list strings.Builder
	entries, err := files.ReadDir(name)
	if err != nil {
		panic(err) // it is embedded
	}
	for _, entry := range entries {
		text, err := files.ReadFile(name + "/" + entry.Name())
		if err != nil {
			panic(err)
		}
		t.files = append(t.files, file{entry.Name(), string(text)})
		fmt.Fprintf(&list, "  %-15s %s\n", entry.Name(), shorts[entry.Name()])
	}
	t.intro = fmt.Sprintf(intro, list.String())
	return t
}

// file is a file that a topic can print, to be changed and used.
type file struct{ name, text string }

// printFile prints the file that is named.
func (t *topic) printFile(s *cmdutil.Streams, names []string) error {
	i := slices.IndexFunc(t.files, func(f file) bool { return len(names) == 1 && f.name == names[0] })
	if i < 0 {
		return cmdutil.NotFoundErrorf("help topic %s: no file %q; name one of: %s", t.name, strings.Join(names, " "), strings.Join(t.fileNames(), ", "))
	}
	_, err := fmt.Fprint(s.Out, t.files[i].text)
	return err
}

func (t *topic) fileNames() (names []string) {
	for _, f := range t.files {
		names = append(names, f.name)
	}
	return names
}
