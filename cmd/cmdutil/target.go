package cmdutil

import (
	"strconv"
	"strings"
)

// Target is what requests are sent to, as people write it: [SCHEME://]HOST[:PORT][/PATH].
type Target struct {
	// Scheme is http, grpc or tcp; empty if none is given.
	Scheme string
	// Host is a host name, or the name of a service.
	Host string
	// Port is 0 if none is given.
	Port uint32
	// Path begins with / or is empty; a query belongs to it.
	Path string
}

// targetSyntax is how a Target is written, for messages.
const targetSyntax = "SERVICE, HOST, HOST:PORT or http://HOST:PORT/PATH, with grpc:// or tcp:// instead of http://"

// ParseTarget reads a Target. What names the argument, for the message. The error is a FlagError.
func ParseTarget(what, text string) (Target, error) {
	var out Target
	wrong := func(why string) (Target, error) {
		return Target{}, FlagErrorf("%s %q: %s; want %s", what, text, why, targetSyntax)
	}
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		switch scheme {
		case "http", "grpc", "tcp":
		case "https":
			return wrong("callers in a mesh send http, and their proxies encrypt it")
		default:
			return wrong("its scheme is not http, grpc or tcp")
		}
		out.Scheme, rest = scheme, after
	}
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		rest, out.Path = rest[:at], rest[at:]
		if out.Path[0] == '?' {
			out.Path = "/" + out.Path
		}
	}
	host, port, hasPort := strings.Cut(rest, ":")
	if out.Host = host; host == "" || strings.ContainsAny(host, " @[]") {
		return wrong("it has no host name")
	}
	if hasPort {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return wrong("its port is not a number from 1 to 65535")
		}
		out.Port = uint32(number)
	}
	return out, nil
}

// String is the URL of the target: with the scheme http, if it has none.
func (t Target) String() string {
	out := t.Scheme
	if out == "" {
		out = "http"
	}
	out += "://" + t.Host
	if t.Port != 0 {
		out += ":" + strconv.FormatUint(uint64(t.Port), 10)
	}
	return out + t.Path
}
