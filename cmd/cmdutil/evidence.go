package cmdutil

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
)

// AddServerFlag adds the flag that names the meshctl serve to ask for what proxies count.
func (s *Source) AddServerFlag(cmd *cobra.Command) { AddServerFlag(cmd, &s.Server) }

// AddServerFlag is the same for commands without a Source.
func AddServerFlag(cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "", "`URL` of the metrics of meshctl serve (default: the pod that leads, by port-forward)")
	_ = cmd.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
}

// server is the address of the flag or, with --demo, that of the demo; empty to find the pod that leads.
func (s *Source) server() string {
	return ServerOf(s.Factory, s.Server)
}

// ServerOf is the address that a flag names or, with --demo, that of the demo; empty to find the pod that leads.
func ServerOf(f *Factory, server string) string {
	if server == "" && f != nil {
		return f.Demo.server()
	}
	return server
}

// Evidence asks for what proxies count, beside what else is read: the function that it returns waits for the answer, which is nil where
// nobody counts by nature. A folder has a server only where one is named; so has what is read with --no-clusters.
func (s *Source) Evidence(ctx context.Context) (wait func() *explain.Evidence) {
	none := func() *explain.Evidence { return nil }
	if s.Server == "" && (s.Dir != "" || s.NoClusters) {
		return none
	}
	management := reading.Management{Server: s.Server}
	if s.Server == "" {
		var err error
		if management, err = s.Management(); err != nil {
			return none // who reads the cluster says so
		}
	}
	answer := make(chan *explain.Evidence, 1)
	go func() { answer <- management.Evidence(ctx) }()
	return func() *explain.Evidence { return <-answer }
}
