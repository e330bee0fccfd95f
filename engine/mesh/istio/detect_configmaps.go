package istio

import (
	"math"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// configMapKey is what is read of a ConfigMap: the settings of a control plane, or
// the roots that proxies trust. There may be one of the latter in every namespace;
// one byte more than can be used shows that it has too many.
func configMapKey(name string) (key string, most int) {
	switch {
	case name == rootsName:
		return rootsKey, maxRootsText + 1
	case name == settingsName || strings.HasPrefix(name, settingsName+"-"):
		return settingsKey, math.MaxInt
	}
	return "", 0
}

// configMapsOf are the ConfigMaps that readSettings and rootsOf read.
func configMapsOf(c *snapshot.Cluster) []snapshot.Ref {
	injectors := newInjectors(c)
	seen := map[snapshot.Ref]bool{}
	var evident, others []snapshot.Ref
	for _, d := range c.Deployments {
		pilot := pilotOf(d)
		if pilot == nil {
			continue
		}
		revision := istiodRevision(d, pilot)
		to := &others
		if injectors.leadTo(d.Namespace, revision) {
			to = &evident
		}
		for _, name := range []string{settingsMapOf(revision), rootsName} {
			if ref := (snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: c.Name, Namespace: d.Namespace, Name: name}); !seen[ref] {
				seen[ref] = true
				*to = append(*to, ref)
			}
		}
	}
	return append(evident, others...)
}
