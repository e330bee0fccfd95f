package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// class is what an error of an API server means for a write.
type class uint8

const (
	// fine: no error.
	fine class = iota
	// conflict: the object changed in the meantime; check it again, report nothing.
	conflict
	// refused: the API server rejected this object.
	refused
	// slow: no answer in time, because of the object (an admission webhook hangs) or
	// of the cluster.
	slow
	// unreachable: the cluster does not answer, or rejects the credential.
	unreachable
)

func classify(err error) class {
	switch {
	case err == nil:
		return fine
	case errors.Is(err, context.DeadlineExceeded):
		return slow
	case !kube.Answered(err):
		return unreachable
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return conflict
	default:
		return refused
	}
}

// reason names the cause of an error in metrics.
func reason(err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return strconv.Itoa(int(status.Status().Code))
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "connection"
}

// slowMessage is the failure of a write that got no answer.
const slowMessage = "the API server did not answer in time; check whether an admission webhook of the cluster hangs"

// foreignMessage is about an object that another management plane wrote or, if that is
// zero, a user.
func foreignMessage(k snapshot.Kind, other snapshot.Plane, owner string) string {
	if other != (snapshot.Plane{}) {
		return fmt.Sprintf("an object of this name is that of %s, so it is left as it is; only one of the two can have it: "+
			"rename what it follows from, or deregister the cluster from one of them", planeName(other))
	}
	return fmt.Sprintf("an object of this name exists that is not ours (its label %s is not %q), so it is left as it is; "+
		"rename or delete it, and ours is written", mirror.OwnerLabel(k), owner)
}

// planeName describes another management plane.
func planeName(p snapshot.Plane) string {
	if p.ID == "" {
		return fmt.Sprintf("the management plane in a namespace %s", p.Namespace)
	}
	return fmt.Sprintf("the management plane %s (in a namespace %s)", p.ID, p.Namespace)
}

// strayMessage is about an object that belongs to a cluster of another name.
func strayMessage(source, cluster string) string {
	return fmt.Sprintf("an object of this name was written for cluster %s (its label %s), and it is not known whether that is another cluster than %s, "+
		"so it is left as it is; `meshctl cluster list` shows which of the two cannot be identified", source, snapshot.ClusterLabel, cluster)
}

func absentMessage(k snapshot.Kind) string {
	info := k.Info()
	return fmt.Sprintf("the cluster serves no %s.%s of version %s; install that CustomResourceDefinition, and the object is written",
		info.Resource, info.Group, info.Version)
}

func unlistedMessage(k snapshot.Kind, reason string) string {
	info := k.Info()
	return fmt.Sprintf("%s.%s cannot be listed: %s; allow list and watch, and the object is written",
		info.Resource, info.Group, reason)
}

func awaitedMessage(cluster, name string) string {
	return fmt.Sprintf("it waits for cluster %s, which cannot be written to now: the gateways there do not know %s yet, so requests sent there would fail", cluster, name)
}

func obstructedMessage(what snapshot.Ref, name string) string {
	return fmt.Sprintf("it waits for %s, which cannot be written: without that, proxies do not know %s, and requests sent there would fail", what, name)
}

// unreachableMessage says that nothing can be written to a cluster.
func unreachableMessage(err error) string {
	hint := "; nothing is written there until it answers"
	if apierrors.IsUnauthorized(err) {
		hint = "; nothing is written there: register the cluster again"
	}
	return kube.Reason("the API server", err) + hint
}
