package istio

import (
	"math"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// configMapKeys are what is read of a ConfigMap: the settings of a control plane, or
// the roots that proxies trust. There may be one of the latter in every namespace;
// one byte more than can be used shows that it has too many. Those of other names hold
// settings, too, if a control plane names them (sharedSettings): no others are asked for.
func configMapKeys(name string) (keys []string, most int) {
	if name == rootsName {
		return []string{rootsKey}, maxRootsText + 1
	}
	return []string{settingsKey, networksKey}, math.MaxInt
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
		shared, _ := sharedMapOf(pilot)
		for _, name := range []string{settingsMapOf(revision), rootsName, shared} {
			if name == "" {
				continue
			}
			if ref := (snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: c.Name, Namespace: d.Namespace, Name: name}); !seen[ref] {
				seen[ref] = true
				*to = append(*to, ref)
			}
		}
	}
	return append(evident, others...)
}
