package help

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed differences.yaml
var differencesYAML []byte

// difference is one way in which meshctl differs from Gloo Mesh 1.x on purpose.
type difference struct {
	// Case is the field or the case.
	Case string `json:"case"`
	// GlooMesh is what Gloo Mesh 1.x does, Meshctl what meshctl does.
	GlooMesh string `json:"glooMesh"`
	Meshctl  string `json:"meshctl"`
}

// area groups differences under a title.
type area struct {
	Title string       `json:"title"`
	Rows  []difference `json:"rows"`
}

// differences lists all of them, as differences.yaml has them.
func differences() []area {
	var areas []area
	if err := yaml.UnmarshalStrict(differencesYAML, &areas); err != nil {
		panic(fmt.Sprintf("differences.yaml: %v", err))
	}
	return areas
}
