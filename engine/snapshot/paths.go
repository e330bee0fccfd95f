package snapshot

import "strings"

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

// ComparedPath is a path, with its query, as proxies of the mesh compare it, and send it on. What BASE does to it, callers have done.
func (m *MeshPlan) ComparedPath(text string) string {
	p, query, hasQuery := strings.Cut(text, "?")
	switch m.PathNormalization {
	case PathsDecoded:
		p = mergedSlashes(withoutDots(decodedSlashes.Replace(p)))
	case PathsMerged:
		p = mergedSlashes(p)
	}
	if hasQuery {
		p += "?" + query
	}
	return p
}

// decodedSlashes reads escaped slashes, and those of the other kind as slashes (Envoy, UNESCAPE_AND_FORWARD and normalize_path).
var decodedSlashes = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", "\\", "/")

// withoutDots resolves segments of dots, which escaped slashes may have hidden. Between two slashes is a segment, too.
func withoutDots(p string) string {
	parts := strings.Split(p, "/")
	out := parts[:1]
	for i, part := range parts[1:] {
		isLast := i == len(parts)-2
		switch {
		case part == ".." && len(out) > 1:
			out = out[:len(out)-1]
		case part != ".." && part != ".":
			out = append(out, part)
			continue
		}
		if isLast {
			out = append(out, "")
		}
	}
	return strings.Join(out, "/")
}

func mergedSlashes(p string) string {
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	return p
}
