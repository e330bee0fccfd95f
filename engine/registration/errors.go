package registration

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// UnreachableError says that an API server cannot be used.
type UnreachableError struct {
	// Server names the server for people, as in
	// `management cluster (context "prod", https://…)`.
	Server string
	// Management: it is the management cluster.
	Management bool
	Err        error
}

func (e *UnreachableError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *UnreachableError) Advice() (what, hint string) {
	return kube.Reason(e.Server, e.Err), kube.NextStep(e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// PermissionError lists what the caller may not do; nothing was written.
type PermissionError struct {
	Server string
	// Missing are "VERB RESOURCE[/NAME][ in namespace NS]", ascending.
	Missing []string
}

func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: you may not:\n  %s\nask its administrator for these permissions, or use a context that has them",
		e.Server, strings.Join(e.Missing, "\n  "))
}

// NameTakenError says that a name belongs to another cluster, or a cluster has
// another name already.
type NameTakenError struct {
	Name   string
	Reason string
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("cluster %s cannot be registered under this name: %s", e.Name, e.Reason)
}

// ForeignObjectError says that an object which registration would write exists
// and was not created by meshctl.
type ForeignObjectError struct {
	Server string
	// Object is "KIND [NAMESPACE/]NAME".
	Object string
	Hint   string
}

func (e *ForeignObjectError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *ForeignObjectError) Advice() (what, hint string) {
	return fmt.Sprintf("%s: %s exists and was not created by meshctl", e.Server, e.Object), e.Hint
}

// NotRegisteredError says that no cluster of a name is registered.
type NotRegisteredError struct {
	Name      string
	Namespace string
	// Hint is a further next step; optional.
	Hint string
}

func (e *NotRegisteredError) Error() string {
	text := fmt.Sprintf("cluster %s is not registered: there is neither a Secret nor a KubernetesCluster of that name in namespace %s; "+
		"`meshctl cluster list` shows the names", e.Name, e.Namespace)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// WrongClusterError says that a context is that of a cluster other than the one
// registered under the name.
type WrongClusterError struct {
	Name   string
	Server string
	// Registered and Actual are UIDs of kube-system namespaces.
	Registered, Actual string
}

func (e *WrongClusterError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *WrongClusterError) Advice() (what, hint string) {
	return fmt.Sprintf("%s is not the cluster registered as %s: its kube-system namespace has UID %s, the registered one has %s", e.Server, e.Name, e.Actual, e.Registered),
		"use the right --remote-context"
}

// OldPlaneError says that a management plane has registered the cluster whose version does not get along with this one.
type OldPlaneError struct {
	Server string
	// Name is what it calls the cluster; Account is the ServiceAccount of its registration.
	Name, Account string
	// Why says what would go wrong.
	Why string
}

func (e *OldPlaneError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *OldPlaneError) Advice() (what, hint string) {
	return fmt.Sprintf("%s: another management plane, of an older version, has registered it as %s (ServiceAccount %s), and %s", e.Server, e.Name, e.Account, e.Why),
		"upgrade it and run `meshctl cluster register` there again, or deregister the cluster there"
}
