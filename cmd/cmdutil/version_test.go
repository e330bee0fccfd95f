package cmdutil

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	cases := map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   Version
	}{
		"nothing is known":            {want: Version{Version: "dev"}},
		"go build without repository": {info: info("(devel)"), want: Version{Version: "dev"}},
		"go install of a tag":         {info: info("v1.2.3"), want: Version{Version: "v1.2.3"}},
		"a commit":                    {info: info("v0.0.0-1-abc", commit), want: Version{Version: "v0.0.0-1-abc", Commit: "abc"}},
		"the linker comes first":      {linked: "v2.0.0", info: info("v1.2.3", commit, modified), want: Version{Version: "v2.0.0", Commit: "abc", Modified: true}},
		"only the linker":             {linked: "v2.0.0", want: Version{Version: "v2.0.0"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := versionOf(c.linked, c.info)
			assert.NotEmpty(t, got.Go)
			assert.NotEmpty(t, got.Platform)
			got.Go, got.Platform = "", ""
			assert.Equal(t, c.want, got)
		})
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"dev": "", "v1.2.3+dirty": "", "v1.2.3-0.20260101000000-0123456789ab": "",
	} {
		assert.Equal(t, want, Version{Version: version}.Tag(), version)
	}
}
