// Package access evaluates who may call what, as the proxies of a mesh do.
//
//	pattern.go  texts: paths, methods and values of headers; contains, overlaps, matches
//	request.go  requests, and the matchers of routes
package access
