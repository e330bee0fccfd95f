// Package cmdutil is what all commands share: the streams they talk through,
// the factory of costly things, typed errors and their exit codes, kube flags,
// the folder or cluster that flags name and the objects that names in it mean,
// and the painters of tables, pages, JSON, YAML and progress.
package cmdutil
