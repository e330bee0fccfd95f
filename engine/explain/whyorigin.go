package explain

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// checkOrigin lets the proxies of the callers refuse a request that fails the check of its origin.
// They do that after an abort, and before the pods see the request.
func (q *query) checkOrigin(out *Why) {
	if q.action == nil {
		return
	}
	check, abort := q.action.CSRF, q.action.Abort
	if check == nil || check.Value.Shadow || check.Value.Percent == 0 || abort != nil && abort.Value.Percent == whole {
		return
	}
	c := check.Value
	wrong := q.request.wrongOrigin(c, out.Host)
	if wrong == "" {
		return
	}
	by := fmt.Sprintf("the CSRF check of %s refuses %s (status 403), as %s; allow it in spec.policy.csrf.additionalOrigins", kindAndName(check.Origin.Ref), ofRequests(c.Percent), wrong)
	switch {
	case c.Percent == whole:
		out.Verdict, out.Reason = Refused, by
	case out.Verdict == Allowed:
		out.Verdict, out.Reason = Partly, by
	default:
		out.Notes = append(out.Notes, by)
	}
}

// checkAbort lets the proxies of the callers answer requests themselves, which then reach no pod. They do that before anything else.
func (q *query) checkAbort(out *Why) {
	if q.action == nil || q.action.Abort == nil || q.action.Abort.Value.Percent == 0 {
		return
	}
	abort := q.action.Abort
	by := fmt.Sprintf("%s lets the proxies of the callers answer %s with status %d themselves", kindAndName(abort.Origin.Ref), ofRequests(abort.Value.Percent), abort.Value.Status)
	switch {
	case abort.Value.Percent == whole:
		out.Verdict, out.Reason, out.Outcomes = Unreachable, by, []Outcome{}
	case out.Verdict == Allowed:
		out.Verdict, out.Reason = Partly, by
	default:
		out.Notes = append(out.Notes, by)
	}
}

// wrongOrigin says what is wrong with the origin of a request to a host; empty if nothing is
// (envoyproxy.io: CSRF). What is compared is the host, with the port if there is one.
func (r Request) wrongOrigin(c snapshot.CSRF, host string) string {
	if !slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, r.Method) {
		return ""
	}
	name := "origin"
	origin := hostAndPort(r.Headers[name])
	if origin == "" {
		name = "referer"
		origin = hostAndPort(r.Headers[name])
	}
	switch {
	case origin == "":
		return "its headers name no origin"
	case r.isOwn(origin, host):
		return ""
	}
	for _, o := range c.Origins {
		if access.PatternOf(o).Matches(origin) {
			return ""
		}
	}
	return "its header " + name + " names " + origin
}

// isOwn reports whether an origin is the host that the request goes to, which callers may shorten.
func (r Request) isOwn(origin, host string) bool {
	if authority := r.Headers["host"]; authority != "" {
		return origin == authority
	}
	name, port, found := strings.Cut(origin, ":")
	if !found {
		port = "80"
	}
	return port == strconv.FormatUint(uint64(r.Port), 10) && (name == host || strings.HasPrefix(host, name+"."))
}

// hostAndPort is that of a URL; what is none is returned as it is.
func hostAndPort(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Host
	}
	return text
}
