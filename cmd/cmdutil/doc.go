// Package cmdutil is what all commands share: the streams they talk through,
// the factory of costly things, typed errors and their exit codes, kube flags,
// and the painters of tables, pages, JSON, YAML and progress.
package cmdutil
