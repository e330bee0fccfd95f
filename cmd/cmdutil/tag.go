package cmdutil

import "regexp"

// release is the version of a build from a tag.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// Tag is the tag of the image of this version; empty for a build that has none.
func (v Version) Tag() string {
	if !release.MatchString(v.Version) {
		return ""
	}
	return v.Version
}
