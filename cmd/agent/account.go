package agent

import (
	"github.com/meshctl/meshctl/certs/agent"
	"github.com/meshctl/meshctl/engine/registration"
)

// Account is what the registration of a cluster gives its agent. Image is described there.
func Account(image string) *registration.Agent {
	return &registration.Agent{
		Image: image, OwnRules: agent.OwnRules, MeshRules: agent.MeshRules(), ClusterRules: agent.ClusterRules(), Limits: agent.Limits,
	}
}
