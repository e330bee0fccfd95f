package kube

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Text is an error for people. Where a request failed, it names the server and the cause, without the
// method and path that net/http puts before them.
func Text(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for _, failed := range requests(err, nil) {
		server := "the server"
		if u, bad := url.Parse(failed.URL); bad == nil && u.Host != "" {
			server = u.Scheme + "://" + u.Host
		}
		text = instead(text, failed.Error(), server, Reason(server, failed))
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.Status().Code == http.StatusUnauthorized {
		text = instead(text, status.Error(), "", Reason("the API server", status))
	}
	// An error may have become text before.
	return request.ReplaceAllString(text, "$1: ")
}

// request is what a url.Error begins with.
var request = regexp.MustCompile(`(?:Get|Head|Post|Put|Patch|Delete|Options) "(https?://[^/"?]+)[^"]*": `)

// instead replaces a part of a text by a reason, and names a server once.
func instead(text, part, server, reason string) string {
	before, after, found := strings.Cut(text, part)
	if !found {
		return text
	}
	if named := strings.TrimSuffix(before, server+": "); named != before && strings.HasPrefix(reason, server+" ") {
		before = named
	}
	return before + reason + after
}

// requests appends the failed requests in a tree of errors.
func requests(err error, to []*url.Error) []*url.Error {
	if failed, is := err.(*url.Error); is { //nolint:errorlint // the tree is walked here
		return append(to, failed)
	}
	switch parent := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return requests(parent.Unwrap(), to)
	case interface{ Unwrap() []error }:
		for _, child := range parent.Unwrap() {
			to = requests(child, to)
		}
	}
	return to
}

// failedPlugin is how client-go says that it got no credential from the plugin that a kubeconfig names.
var failedPlugin = regexp.MustCompile(`getting credentials: exec: executable (.+?) (not found|failed with exit code -?\d+)`)

// pluginReason says which plugin gave no credential; empty if that is not what is wrong.
func pluginReason(server string, err error) string {
	found := failedPlugin.FindStringSubmatch(err.Error())
	switch {
	case found == nil:
		return ""
	case found[2] == "not found":
		return server + " gets no credential: the plugin " + found[1] + " of the kubeconfig is not found; install it, or use a context without it"
	}
	return server + " gets no credential: the plugin " + found[1] + " of the kubeconfig " + found[2] + "; log in with it again, or run it in a shell to see why"
}
