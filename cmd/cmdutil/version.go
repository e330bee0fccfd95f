package cmdutil

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
)

// version replaces the version that the Go toolchain finds, where there is no
// repository to find it in. The linker sets it:
// -X github.com/meshctl/meshctl/cmd/cmdutil.version=v1.2.3
var version string

// Version says which meshctl this is.
type Version struct {
	// Version is a tag, or what Go makes of a commit without one
	// (v0.0.0-20261123155400-49a04a67abcd); "dev" if neither is known.
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion reads what the linker and the Go toolchain wrote into the binary.
func buildVersion() Version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version, info)
}

// versionOf is the version of a binary: linked is what the linker was told, and
// info what the toolchain found; either may be missing.
func versionOf(linked string, info *debug.BuildInfo) Version {
	v := Version{Version: cmp.Or(linked, "dev"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	if linked == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// release is the version of a build from a tag.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// Tag is the tag of the image of this version; empty for a build that has none.
func (v Version) Tag() string {
	if !release.MatchString(v.Version) {
		return ""
	}
	return v.Version
}
