package cmdutil_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cmdutil.Target{
		"reviews":                         {Host: "reviews"},
		"reviews:9080":                    {Host: "reviews", Port: 9080},
		"reviews:9080/x/1?a=b:c":          {Host: "reviews", Port: 9080, Path: "/x/1?a=b:c"},
		"reviews?a=b":                     {Host: "reviews", Path: "/?a=b"},
		"http://reviews.bookinfo:80/x":    {Scheme: "http", Host: "reviews.bookinfo", Port: 80, Path: "/x"},
		"grpc://reviews:9080/a.B/C":       {Scheme: "grpc", Host: "reviews", Port: 9080, Path: "/a.B/C"},
		"tcp://db:5432":                   {Scheme: "tcp", Host: "db", Port: 5432},
		"reviews.bookinfo.svc.c-2.global": {Host: "reviews.bookinfo.svc.c-2.global"},
	} {
		got, err := cmdutil.ParseTarget("TO", text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		again, err := cmdutil.ParseTarget("TO", got.String())
		require.NoError(t, err, text)
		got.Scheme, again.Scheme = "", ""
		assert.Equal(t, got, again, "its URL means the same")
	}
	for text, want := range map[string]string{
		"":               "it has no host name",
		"http://":        "it has no host name",
		"http:///x":      "it has no host name",
		"a b":            "it has no host name",
		"me@host":        "it has no host name",
		"reviews:http":   "its port is not a number",
		"reviews:0":      "its port is not a number",
		"reviews:65536":  "its port is not a number",
		"ftp://reviews":  "its scheme is not http, grpc or tcp",
		"https://review": "their proxies encrypt it",
	} {
		_, err := cmdutil.ParseTarget("TO", text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "want SERVICE, HOST, HOST:PORT or http")
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	}
}
