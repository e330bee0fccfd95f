package snapshot

// What proxies do to paths before they compare them (istio.io,
// MeshConfig.ProxyPathNormalization).
const (
	PathsAsTheyAre = "NONE"
	PathsBase      = "BASE"
	PathsMerged    = "MERGE_SLASHES"
	PathsDecoded   = "DECODE_AND_MERGE_SLASHES"
)

// PassingPaths are spellings of ../ that proxies of the mesh do not resolve, although many
// applications do; nil if there are none, or if that is not known.
func (m *MeshPlan) PassingPaths() []string {
	switch m.PathNormalization {
	case PathsAsTheyAre:
		return []string{"../", "..%2f", "..%5c"}
	case PathsBase, PathsMerged:
		return []string{"..%2f", "..%5c"}
	}
	return nil
}
