// meshctl manages many service meshes in many clusters as one.
package main

import (
	"os"

	// The roots of Mozilla, for where the system has none: the image contains
	// nothing but this binary. Only a server outside of the clusters, such as a
	// Vault, has a certificate of a public authority.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/meshctl/meshctl/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
