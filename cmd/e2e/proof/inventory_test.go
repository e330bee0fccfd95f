package proof

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/engine"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// unseen are fields, with all below them, that are not in the configuration of
// proxies, or that have no case yet.
var unseen = []string{
	"TrafficPolicy.httpRequestMatchers.name",
	"Settings.federation.warnServiceEntriesPerProxy",
	"Settings.federation.warnEndpointsPerProxy",
	"VirtualMesh.mtlsConfig",           // package e2e, TestTrust
	"Settings.trust",                   // package certs/verify
	"AccessPolicy.enforcement",         // package engine, TestAuditingChangesNothing
	"Settings.workloadClusterPolicies", // package engine, TestPoliciesOfClustersStayInTheirNamespace
}

// TestEveryFieldHasACase: every field that Istio can express has a case.
func TestEveryFieldHasACase(t *testing.T) {
	t.Parallel()
	istio := engine.Dialects()[slices.IndexFunc(engine.Dialects(), func(d *snapshot.Dialect) bool { return d.Name == "Istio" })]
	used := fieldsOfCases(t)
	for kind, spec := range map[snapshot.Kind]any{
		snapshot.TrafficPolicy:      networkingv1.TrafficPolicySpec{},
		snapshot.AccessPolicy:       networkingv1.AccessPolicySpec{},
		snapshot.VirtualMesh:        networkingv1.VirtualMeshSpec{},
		snapshot.VirtualDestination: enterprisev1beta1.VirtualDestinationSpec{},
		snapshot.ServiceDependency:  enterprisev1beta1.ServiceDependencySpec{},
		snapshot.Settings:           settingsv1.SettingsSpec{},
	} {
		for _, path := range snapshot.FieldsOf(reflect.TypeOf(spec)) {
			support, _ := istio.Of(kind, path, "")
			name := kind.String() + "." + path
			left := slices.ContainsFunc(unseen, func(field string) bool { return strings.HasPrefix(name+".", field+".") })
			if support.Level != snapshot.NotExpressible && !left {
				assert.True(t, used[name], "%s: add it to a case in testdata", name)
			}
		}
	}
}

// fieldsOfCases are the fields that are set in any case, by kind and path.
func fieldsOfCases(t *testing.T) map[string]bool {
	t.Helper()
	documents := [][]byte{manifests.VirtualMesh(), manifests.Policies()}
	for _, pattern := range []string{"testdata/*.yaml", "testdata/federation/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			documents = append(documents, data)
		}
	}
	out := map[string]bool{}
	for _, data := range documents {
		objects, err := kube.Decode(data)
		require.NoError(t, err)
		for _, o := range objects {
			spec := map[string]any{
				"TrafficPolicy":      &networkingv1.TrafficPolicySpec{},
				"AccessPolicy":       &networkingv1.AccessPolicySpec{},
				"VirtualMesh":        &networkingv1.VirtualMeshSpec{},
				"VirtualDestination": &enterprisev1beta1.VirtualDestinationSpec{},
				"ServiceDependency":  &enterprisev1beta1.ServiceDependencySpec{},
				"Settings":           &settingsv1.SettingsSpec{},
			}[o.GetKind()]
			if spec == nil {
				continue
			}
			written, _ := o.Object["spec"].(map[string]any)
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(written, spec, true), o.GetName())
			for _, path := range snapshot.FieldsIn(spec) {
				out[o.GetKind()+"."+path] = true
			}
		}
	}
	return out
}
