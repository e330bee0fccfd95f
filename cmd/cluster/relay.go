package cluster

import (
	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// completeRelay rejects flags that do not go together with --relay, or without it.
func (o *RegisterOptions) completeRelay(cmd *cobra.Command) error {
	without := []string{"relay-server", "timeout"}
	if o.Relay {
		without = []string{"api-server-address", "token-ttl"}
	}
	for _, flag := range without {
		switch {
		case !cmd.Flags().Changed(flag):
		case o.Relay:
			return cmdutil.FlagErrorf("--%s is about a credential, and a cluster with --relay has none", flag)
		default:
			return cmdutil.FlagErrorf("--%s needs --relay", flag)
		}
	}
	if o.Wait <= 0 {
		return cmdutil.FlagErrorf("--timeout must be greater than 0")
	}
	return nil
}

// relay is how the agent of the cluster reaches serve; nil without --relay.
func (o *RegisterOptions) relay() *registration.Relay {
	if !o.Relay {
		return nil
	}
	return &registration.Relay{Server: o.RelayServer, Store: agent.RelayStore}
}
