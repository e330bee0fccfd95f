package main

import (
	meshconfig "istio.io/api/mesh/v1alpha1"
	pilotagent "istio.io/istio/pilot/cmd/pilot-agent/app"
	istioagent "istio.io/istio/pkg/istio-agent"
	"istio.io/istio/pkg/log"
	"istio.io/istio/pkg/security"
	"istio.io/istio/security/pkg/nodeagent/sds"
)

// agent is Istio's own agent, which gets certificates, configures Envoy and runs it.
func agent([]string) int {
	log.EnableKlogWithCobra()
	command := pilotagent.NewRootCommand(func(o *security.Options, secrets security.SecretManager, keys *meshconfig.PrivateKeyProvider) istioagent.SDSService {
		return sds.NewServer(o, secrets, keys)
	})
	if err := command.Execute(); err != nil {
		log.Error(err)
		return 1
	}
	return 0
}
