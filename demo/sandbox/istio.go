package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"istio.io/istio/operator/pkg/manifest"
	"istio.io/istio/operator/pkg/render"
	"istio.io/istio/pilot/cmd/pilot-discovery/app"
	"istio.io/istio/pkg/log"
)

func istiod([]string) int {
	log.EnableKlogWithCobra()
	if err := app.NewRootCommand().Execute(); err != nil {
		log.Error(err)
		return 1
	}
	return 0
}

// istioManifests prints the objects of an Istio installation, rendered by
// Istio's own operator packages from the charts in its module. An argument
// with an equals sign is a setting, path=value, as in `istioctl install --set`;
// any other is a file holding an IstioOperator, "-" being standard input.
func istioManifests(args []string) int {
	var files, settings []string
	for _, arg := range args[1:] {
		if strings.Contains(arg, "=") {
			settings = append(settings, arg)
		} else {
			files = append(files, arg)
		}
	}
	sets, _, err := render.GenerateManifest(files, settings, false, nil, nil)
	if err != nil {
		fmt.Fprintf(os.Stderr, "istio-manifests: rendering the charts: %v\n", err)
		return 1
	}
	// They come from a map, in any order.
	slices.SortFunc(sets, func(a, b manifest.ManifestSet) int {
		return strings.Compare(string(a.Component), string(b.Component))
	})
	for _, set := range sets {
		for _, m := range set.Manifests {
			fmt.Printf("---\n%s\n", m.Content)
		}
	}
	return 0
}
