// Package registration is what an administrator does with clusters: register,
// deregister and list them, and install or upgrade the custom resource types.
// Everything can be repeated: registering again changes only what differs, and
// deregistering again finishes what was interrupted. Nothing is written before
// it is known that all of it can be written.
//
// On the cluster, registration creates a ServiceAccount with a ClusterRole that
// follows from the table of kinds, and a Role to renew its own token. In the
// management namespace it creates the two objects that package cluster reads: a
// Secret with a kubeconfig, and a KubernetesCluster.
//
// Register:
//
//	options.go     what to register where
//	register.go    the order of the writes
//	preflight.go   what is checked before the first write
//	address.go     the address and the certificate to store
//	inside.go      the same where serve runs in the management cluster
//	servestatus.go waiting until serve reports whether it reaches the cluster
//	account.go     the account for serve, what limits its tokens, and how they end
//	remote.go      objects on the registered cluster
//	planes.go      other management planes on the same cluster
//	rules.go       the permissions granted there
//	settings.go    access to the settings of meshes, in their namespaces
//	management.go  objects on the management cluster
//	crds.go        installing and upgrading the custom resource types
//	agent.go       the account of the cluster's agent, and what limits it
//	agentdeployment.go  its Deployment
//	relay.go       the same for a cluster that is reached through its agent
//	relayregister.go  the order of the writes there
//	relaywait.go   waiting until its agent is connected
//	invite.go      the same without access to the cluster
//	inspect.go     the same checks alone, for wizards
//	renew.go       registering again all clusters whose credential is not good
//
// Deregister:
//
//	deregister.go  the order of the removals
//	clean.go       removing what is on the cluster
//	agentremove.go  waiting for the agent, and removing it
//	collect.go     deleting all objects with a label
//	elsewhere.go   objects in other clusters that refer to the cluster
//	leftovers.go   the record of what is not removed yet, or could not be
//
// Revoke:
//
//	revoke.go      ending the certificates of an agent
//
// List:
//
//	list.go        all clusters, with their meshes
//	check.go       the health of one cluster
//	detours.go     ways to clusters whose stored address cannot be dialled from here
//
// Install and upgrade:
//
//	install.go         the order of the writes, and what is checked before
//	installoptions.go  what to install, and what stays as it was installed
//	installobjects.go  the objects beside the custom resource types
//	installrules.go    the permissions of serve
//	installrelay.go    how agents reach serve
//	installtypes.go    no older meshctl drops what a newer one has stored
//	installwait.go     waiting until serve runs
//	versions.go        what is installed, and how it differs from this meshctl
//
// Uninstall:
//
//	uninstallagent.go leaving clusters through their agents
//	uninstallplan.go  finding what there is of a management plane
//	uninstall.go      removing it
//	disown.go         leaving on a cluster what its mesh uses
//
// Back up and restore:
//
//	backup.go             reading the state of a management plane
//	backupfile.go         the file
//	restore.go            what is checked before, and the order of the writes
//	restoreorder.go       which object is when and why
//	restorewrite.go       one object: its age, its status, the owners of its fields
//	restoregeneration.go  generations in statuses
//
// Release:
//
//	release.go     letting serve delete what no edit explains
//
// All of them:
//
//	server.go      one API server, as the caller may use it
//	apply.go       writing an object, and whose it was before
//	access.go      asking the API server for permissions
//	report.go      what was done
//	names.go       names and annotations
//	errors.go      typed errors
package registration
