package crds_test

import (
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/api/crds"
	"github.com/meshctl/meshctl/engine/api/scheme"
)

func all(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := crds.All()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// The names are a contract with the manifests, scripts and charts of users.
func TestNames(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"meshes.discovery.mesh.gloo.solo.io":                          "v1 Mesh",
		"workloads.discovery.mesh.gloo.solo.io":                       "v1 Workload",
		"destinations.discovery.mesh.gloo.solo.io":                    "v1 Destination",
		"trafficpolicies.networking.mesh.gloo.solo.io":                "v1 TrafficPolicy",
		"accesspolicies.networking.mesh.gloo.solo.io":                 "v1 AccessPolicy",
		"virtualmeshes.networking.mesh.gloo.solo.io":                  "v1 VirtualMesh",
		"settings.settings.mesh.gloo.solo.io":                         "v1 Settings",
		"dashboards.settings.mesh.gloo.solo.io":                       "v1 Dashboard",
		"kubernetesclusters.multicluster.solo.io":                     "v1alpha1 KubernetesCluster",
		"issuedcertificates.certificates.mesh.gloo.solo.io":           "v1 IssuedCertificate",
		"certificaterequests.certificates.mesh.gloo.solo.io":          "v1 CertificateRequest",
		"podbouncedirectives.certificates.mesh.gloo.solo.io":          "v1 PodBounceDirective",
		"virtualdestinations.networking.enterprise.mesh.gloo.solo.io": "v1beta1 VirtualDestination",
		"servicedependencies.networking.enterprise.mesh.gloo.solo.io": "v1beta1 ServiceDependency",
		"wasmdeployments.networking.enterprise.mesh.gloo.solo.io":     "v1beta1 WasmDeployment",
		"accesslogrecords.observability.enterprise.mesh.gloo.solo.io": "v1 AccessLogRecord",
		"roles.rbac.enterprise.mesh.gloo.solo.io":                     "v1 Role",
		"rolebindings.rbac.enterprise.mesh.gloo.solo.io":              "v1 RoleBinding",
	}
	got := map[string]string{}
	for _, crd := range all(t) {
		require.Len(t, crd.Spec.Versions, 1, crd.Name)
		got[crd.Name] = crd.Spec.Versions[0].Name + " " + crd.Spec.Names.Kind
	}
	assert.Equal(t, want, got)
}

// Every kind of the scheme has a definition and the other way round.
func TestKindsMatchScheme(t *testing.T) {
	t.Parallel()
	own := runtime.NewScheme()
	require.NoError(t, scheme.AddOwn(own))
	var want []string
	for gvk := range own.AllKnownTypes() {
		// The API machinery registers kinds of its own, in the core group or without a list.
		if gvk.Group != "" && own.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			want = append(want, gvk.String())
		}
	}
	var got []string
	for _, crd := range all(t) {
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind}
		got = append(got, gvk.String())
		assert.True(t, own.Recognizes(gvk.GroupVersion().WithKind(crd.Spec.Names.ListKind)), crd.Name)
	}
	assert.ElementsMatch(t, want, got)
}

func TestEveryDefinitionIsComplete(t *testing.T) {
	t.Parallel()
	shortNames := map[string]string{}
	for _, crd := range all(t) {
		version := crd.Spec.Versions[0]
		assert.Equal(t, apiextensionsv1.NamespaceScoped, crd.Spec.Scope, crd.Name)
		assert.True(t, version.Served && version.Storage, crd.Name)
		assert.NotNil(t, version.Subresources, crd.Name)
		assert.NotNil(t, version.Subresources.Status, crd.Name)
		assert.Contains(t, crd.Spec.Names.Categories, "meshctl", crd.Name)
		assert.Greater(t, len(crd.Spec.Names.Categories), 1, "%s: wants a category of its own sort", crd.Name)
		assert.Subset(t, crd.Labels, crds.Labels(), crd.Name)
		assert.Equal(t, "Age", version.AdditionalPrinterColumns[len(version.AdditionalPrinterColumns)-1].Name, crd.Name)
		assert.Greater(t, len(version.AdditionalPrinterColumns), 1, "%s: wants a column that says something", crd.Name)
		require.NotEmpty(t, crd.Spec.Names.ShortNames, crd.Name)
		for _, name := range crd.Spec.Names.ShortNames {
			assert.Empty(t, shortNames[name], "short name %s of %s is taken", name, crd.Name)
			shortNames[name] = crd.Name
		}
	}
	// Older documents call a Destination a TrafficTarget; Roles had these names before.
	assert.Equal(t, "destinations.discovery.mesh.gloo.solo.io", shortNames["tt"])
	for _, name := range []string{"gmrole", "gmroles"} {
		assert.Equal(t, "roles.rbac.enterprise.mesh.gloo.solo.io", shortNames[name])
	}
	for _, name := range []string{"gmrolebinding", "gmrolebindings"} {
		assert.Equal(t, "rolebindings.rbac.enterprise.mesh.gloo.solo.io", shortNames[name])
	}
}

// `kubectl explain` has a word on every field, and no value is set behind the user's back.
func TestEveryFieldIsDocumentedAndHasNoDefault(t *testing.T) {
	t.Parallel()
	for _, crd := range all(t) {
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		assert.NotEmpty(t, root.Description, crd.Name)
		for _, part := range []string{"spec", "status"} {
			for _, field := range schemaFields(root.Properties[part], part) {
				assert.Nil(t, field.schema.Default, "%s: %s", crd.Name, field.path)
				if !strings.HasSuffix(field.path, "*") {
					assert.NotEmpty(t, field.schema.Description, "%s: %s", crd.Name, field.path)
				}
			}
		}
	}
}

func TestAllReturnsFreshObjects(t *testing.T) {
	t.Parallel()
	all(t)[0].Labels["app"] = "changed"
	assert.Equal(t, "gloo-mesh", all(t)[0].Labels["app"])
	names := []string{}
	for _, crd := range all(t) {
		names = append(names, crd.Spec.Group+"_"+crd.Spec.Names.Plural)
	}
	assert.True(t, sort.StringsAreSorted(names), names)
}

type field struct {
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

// schemaFields lists the fields below s, with [] for the elements of lists and * for the keys of maps.
func schemaFields(s apiextensionsv1.JSONSchemaProps, path string) []field {
	var fields []field
	add := func(at string, inner apiextensionsv1.JSONSchemaProps) {
		fields = append(fields, field{at, inner})
		fields = append(fields, schemaFields(inner, at)...)
	}
	for name, inner := range s.Properties {
		add(path+"."+name, inner)
	}
	if s.Items != nil && s.Items.Schema != nil {
		fields = append(fields, schemaFields(*s.Items.Schema, path+"[]")...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		add(path+".*", *s.AdditionalProperties.Schema)
	}
	return fields
}
