// Command sandbox runs as every process of a small Kubernetes cluster with Istio,
// one role for each process: the real components, linked into one binary, so that a
// cluster needs no container engine and no root.
//
//	sandbox ROLE [FLAGS OF THE ROLE]
//
// The roles pass their flags to the component unchanged; `sandbox roles` lists them.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// roles are the components this binary can run as. Each takes the command line
// of the component (args[0] is the program's name) and returns its exit code.
func roles() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"etcd":                    etcd,
		"kube-apiserver":          apiServer,
		"kube-controller-manager": controllerManager,
		"kube-scheduler":          scheduler,
		"kwok":                    kwok,
		"kwok-stages":             kwokStages,
		"istiod":                  istiod,
		"istio-manifests":         istioManifests,
		"worlds":                  worlds,
		"xds":                     xds,
	}
}

func main() {
	all := roles()
	if len(os.Args) == 2 && os.Args[1] == "roles" {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Println(name)
		}
		return
	}
	if len(os.Args) < 2 || all[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "%s: want a role as first argument; `%s roles` lists them\n",
			filepath.Base(os.Args[0]), filepath.Base(os.Args[0]))
		os.Exit(2)
	}
	role := os.Args[1]
	// Components read their flags from os.Args, and use args[0] as their name.
	os.Args = append([]string{role}, os.Args[2:]...)
	os.Exit(all[role](os.Args))
}
