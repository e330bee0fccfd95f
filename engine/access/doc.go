// Package access evaluates who may call what, as the proxies of a mesh do.
//
//	pattern.go    texts: paths, methods and values of headers; contains, overlaps, matches
//	request.go    requests, and the matchers of routes
//	rules.go      which rule allows all that another one allows
//	intersect.go  what the policies on several services allow together
//	decide.go     whether rules allow a call, and what of it they do not
//	deny.go       whether a call is denied, whatever allows it
package access
