package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/help"
	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/engine/explain"
)

// described are cases that together have what commands can print.
var described = []string{
	"bookinfo", "external", "failover-localized", "failover-mistakes", "frozen", "last-good", "limited-trust",
	"mirrors", "mistakes", "osm-traffic", "outlier-detection", "roots-differ", "service-dependencies", "settings", "trust-rotating",
}

// TestAnswersMatchTheirSchemas: what commands print with -o json and -o yaml has the fields of
// `meshctl help schema`, and no others.
func TestAnswersMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	for i, name := range described {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := filepath.Join(cases, name, "in")
			format := []string{"json", "yaml"}[i%2]
			answer := func(command string, args ...string) string {
				args = append(append(strings.Fields(command), args...), "--dir", in, "-o", format)
				out, errs, code := run(t.Context(), args...)
				assert.NotEmpty(t, out, "%v: %s", args, errs)
				assert.NotEqual(t, cmdutil.ExitFailure, code, "%v: %s", args, errs)
				schematest.Valid(t, command, out)
				return out
			}
			answer("check")
			answer("describe problems")
			answer("trust show")
			for _, kind := range explain.Kinds() {
				word := strings.TrimPrefix(strings.ToLower(kind.String()), "kubernetes")
				answer("describe " + word)
				for _, object := range names(t, in, word) {
					answer("describe "+word, object)
				}
			}
			answer("plan", "-f", filepath.Join(in, "management"), "--delete")
			from, to := names(t, in, "workload"), names(t, in, "destination")
			for i := range min(len(from), len(to)) {
				answer("why", from[i], to[i])
			}
			out, _, _ := run(t.Context(), "translate", in, "--statuses", "-o", format)
			schematest.Valid(t, "translate", out)
		})
	}
}

// names are some objects of a kind.
func names(t *testing.T, dir, kind string) (out []string) {
	t.Helper()
	text, _, code := run(t.Context(), "describe", kind, "--dir", dir, "-o", "json")
	require.Zero(t, code)
	var items []struct{ Ref struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(text), &items))
	for _, item := range items[:min(len(items), 2)] {
		out = append(out, item.Ref.Name)
	}
	return out
}

// TestMoreAnswersMatchTheirSchemas: those that need no folder, or something of their own.
func TestMoreAnswersMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	image := "example.com/meshctl:1"
	for line, command := range map[string]string{
		"version --client":                   "version",
		"install --dry-run --image " + image: "install",
		"create tp x --dir " + cases + "/bookinfo/in --destination reviews.bookinfo.cluster-1 --timeout 3s":                                 "create trafficpolicy",
		"create ap x --dir " + cases + "/bookinfo/in --all-sources --destination reviews.bookinfo.cluster-1":                                "create accesspolicy",
		"create vd x --dir " + cases + "/bookinfo/in --hostname x.global --port 9080 --mesh cluster-1 --nearest reviews.bookinfo.cluster-1": "create virtualdestination",
		"create sdep x --dir " + cases + "/bookinfo/in --all-sources --destination reviews.bookinfo.cluster-1":                              "create servicedependency",
		"create alr x --dir " + cases + "/bookinfo/in --all-workloads":                                                                      "create accesslogrecord",
		"edit tp patient --dir " + cases + "/bookinfo/in --timeout 3s":                                                                      "edit trafficpolicy",
		"create vm x --dir " + cases + "/matchers/in --all-meshes":                                                                          "create virtualmesh",
		"why details-v1 ratings POST /x --dir " + cases + "/bookinfo/in":                                                                    "why",
		"why cart-v1.shop.cluster-2 cart.shop.svc.cluster-1.global --dir " + cases + "/limited-trust/in":                                    "why",
		"trust show virtual-mesh --dir " + cases + "/trust-rotating/in":                                                                     "trust show",
		"plan -f " + cases + "/bookinfo/in/management/policies.yaml --dir " + cases + "/bookinfo/in":                                        "plan",
		"describe problems --dir " + cases + "/failover-flat/in":                                                                            "describe problems",
	} {
		for _, format := range []string{"json", "yaml"} {
			t.Run(line+" -o "+format, func(t *testing.T) {
				t.Parallel()
				out, errs, code := run(t.Context(), append(strings.Fields(line), "-o", format)...)
				assert.Contains(t, []int{0, 5}, code, errs)
				require.NotEmpty(t, out)
				schematest.Valid(t, command, out)
			})
		}
	}
}

// TestEachSchemaHasACommand: no file is left of a command that is no more.
func TestEachSchemaHasACommand(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("help/schemas")
	require.NoError(t, err)
	for _, file := range files {
		path := strings.ReplaceAll(strings.TrimSuffix(file.Name(), ".json"), "-", " ")
		c, rest, err := newRoot().Find(strings.Fields(path))
		require.NoError(t, err)
		assert.Empty(t, rest, file.Name())
		assert.NotEmpty(t, forms(c), file.Name())
		assert.NotNil(t, help.Schema(path), file.Name())
	}
}
