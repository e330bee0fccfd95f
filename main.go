// meshctl manages many service meshes in many clusters as one.
package main

import (
	"os"

	"github.com/meshctl/meshctl/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
