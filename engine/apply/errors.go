package apply

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// class says what an error of an API server means for the write that got it.
type class uint8

const (
	// fine: no error.
	fine class = iota
	// race: somebody was faster; look again, say nothing.
	race
	// refused: the API server does not want this object.
	refused
	// slow: no answer in time, which may be the object's fault (an admission
	// webhook that hangs) or the cluster's.
	slow
	// unreachable: the whole cluster does not answer, or not to us.
	unreachable
)

func classify(err error) class {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return fine
	case errors.Is(err, context.DeadlineExceeded):
		return slow
	case !errors.As(err, &status),
		apierrors.IsUnauthorized(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return unreachable
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return race
	default:
		return refused
	}
}

// localPort is the sender's end of a TCP connection, which is another one each time.
var localPort = regexp.MustCompile(`\S+:\d+->`)

// sentence is an error in the API server's own words, the same each time.
func sentence(err error) string {
	var status apierrors.APIStatus
	text := err.Error()
	// The URL names one of several requests, and carries a random timeout.
	var request *url.Error
	if errors.As(err, &request) {
		text = request.Err.Error()
	}
	if errors.As(err, &status) && status.Status().Message != "" {
		text = status.Status().Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the API server gave no answer in time; see whether an admission webhook of the cluster hangs"
	}
	return localPort.ReplaceAllString(text, "")
}

func foreignSentence(k snapshot.Kind, owner string) string {
	return fmt.Sprintf("an object of this name exists that is not ours (its label %s is not %q), so it is left as it is; "+
		"rename or delete it, and ours is written", ownerLabel(k), owner)
}

func absentSentence(k snapshot.Kind) string {
	info := k.Info()
	return fmt.Sprintf("the cluster serves no %s.%s of version %s; install that CustomResourceDefinition, and the object is written",
		info.Resource, info.Group, info.Version)
}

func unlistedSentence(k snapshot.Kind, reason string) string {
	info := k.Info()
	return fmt.Sprintf("%s.%s cannot be listed: %s; allow list and watch, and the object is written",
		info.Resource, info.Group, reason)
}

func unreachableSentence(err error) string {
	if apierrors.IsUnauthorized(err) {
		return "the API server does not accept the credential, so nothing is written there; register the cluster again"
	}
	return "the API server does not answer, so nothing is written there until it does: " + sentence(err)
}
