// Command dataplane runs real Istio proxies for the pods of a demo's clusters: for
// each pod with a proxy a network namespace with a small application, Istio's own
// agent, and Envoy; and programs as pods of a cluster. It needs Linux and user namespaces, but no root and no
// container engine.
//
//	dataplane ROLE [ARGUMENTS]
//
// `dataplane init ROLE` runs a role in namespaces of its own: kubelet, which starts
// everything else, or check, which finds out whether this machine permits it.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// roles are what this binary can run as. Each takes its arguments (args[0] is the
// role) and returns its exit code.
func roles() map[string]func(args []string) int {
	return map[string]func(args []string) int{
		"init":    initialize,
		"first":   first,
		"check":   check,
		"kubelet": kubelet,
		"agent":   agent,
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
	os.Args = append([]string{role}, os.Args[2:]...)
	os.Exit(all[role](os.Args))
}
