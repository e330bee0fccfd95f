package cmdutil

import (
	"github.com/meshctl/meshctl/engine/registration"
)

// ContextConfigs returns the contexts of a kubeconfig, without those that cannot be loaded. There are none
// if the management cluster is reached without a kubeconfig.
func ContextConfigs(f *Factory, kubeconfig string) (out []registration.Context) {
	if f.Contexts == nil {
		return nil
	}
	names, _, err := f.Contexts(kubeconfig)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if config, err := f.Config(kubeconfig, name); err == nil {
			out = append(out, registration.Context{Name: name, Config: config})
		}
	}
	return out
}

// Detours are the contexts of a kubeconfig as ways to clusters whose stored address cannot be dialled from
// here.
func Detours(f *Factory, kubeconfig string) *registration.Detours {
	return registration.NewDetours(func() []registration.Context { return ContextConfigs(f, kubeconfig) }, 0)
}
