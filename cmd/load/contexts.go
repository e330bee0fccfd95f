package load

import (
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// Contexts are those of a kubeconfig; one that cannot be loaded leads nowhere. There are none if the
// management cluster is reached without a kubeconfig.
func Contexts(f *cmdutil.Factory, kubeconfig string) (out []registration.Context) {
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
func Detours(f *cmdutil.Factory, kubeconfig string) *registration.Detours {
	return registration.NewDetours(func() []registration.Context { return Contexts(f, kubeconfig) }, 0)
}
