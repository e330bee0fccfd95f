package explain

import (
	"fmt"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// federation checks how much proxies hold because of federation.
func (k *checks) federation() CheckCategory {
	c := CheckCategory{Title: "Federation"}
	for _, ref := range sortedRefs(k.index.virtualMeshes) {
		id := "federation-size/" + ref.Name
		what := fmt.Sprintf("proxies of VirtualMesh %s hold at most %d services of other meshes", ref.Name, ManyEntries)
		modes, err := FederationSizes(k.index, ref, k.Translate)
		switch {
		case err != nil:
			c.warn(id, what, "not known: "+err.Error(), "see `meshctl describe virtualmesh "+ref.Name+"`")
		case len(modes) == 0:
		case modes[0].ServiceEntries <= ManyEntries:
			c.ok(id, what, modesText(modes))
		case modes[0].Mode == networkingv1.FederationModeDeclared:
			c.warn(id, what, "mesh "+modes[0].Mesh.Name+": "+modesText(modes), "name fewer destinations in ServiceDependencies: one without destinationSelectors has all of them imported")
		default:
			c.warn(id, what, "mesh "+modes[0].Mesh.Name+": "+modesText(modes), "set federation.mode of the VirtualMesh to DECLARED, and say in ServiceDependencies what each mesh calls; `meshctl plan` says before what callers would lose")
		}
	}
	return c
}
