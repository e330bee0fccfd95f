package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
)

// TestSettingsOfAnotherName: Settings that replace equal ones of another name are the
// ones that issues name.
func TestSettingsOfAnotherName(t *testing.T) {
	t.Parallel()
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})
	named := func(name string) []*settingsv1.Settings {
		return []*settingsv1.Settings{{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in.Management.Namespace},
			Spec:       settingsv1.SettingsSpec{Federation: &settingsv1.FederationSettings{WarnServiceEntriesPerProxy: new(uint32(1))}},
		}}
	}
	translator := engine.New(engine.Options{})
	for _, name := range []string{"before", "after"} {
		management := *in.Management
		management.Settings = named(name)
		next := *in
		next.Management = &management
		want := engine.Translate(&next).Output.Issues
		assert.NotEmpty(t, want)
		assert.Equal(t, want, translator.Translate(&next).Output.Issues, name)
	}
}
