// Package describe is the command `meshctl describe`. It prints what package explain
// answers about clusters, meshes, workloads, destinations and policies.
//
//	describe.go  the command, its subcommands, and one object
//	list.go      all objects of a kind, as a table
//	problems.go  the subcommand problems
package describe
