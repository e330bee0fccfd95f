package vault

import (
	"fmt"
	"strings"
)

// path is what a caPath means: the mount of the PKI secrets engine, and the issuer in it that signs; empty for the default
// one.
type path struct{ mount, issuer string }

// signs is the last part of each path that signs a CA certificate.
const signs = "sign-intermediate"

// parsePath reads MOUNT/root/sign-intermediate or MOUNT/issuer/NAME/sign-intermediate, also with /v1/ before it.
func parsePath(text string) (path, error) {
	parts := strings.Split(withoutVersion(text), "/")
	n := len(parts)
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "?#%") {
			n = 0
		}
	}
	switch {
	case n >= 3 && parts[n-1] == signs && parts[n-2] == "root":
		return path{mount: strings.Join(parts[:n-2], "/")}, nil
	case n >= 4 && parts[n-1] == signs && parts[n-3] == "issuer":
		return path{mount: strings.Join(parts[:n-3], "/"), issuer: parts[n-2]}, nil
	}
	return path{}, fmt.Errorf("caPath %.120q is no endpoint that signs a CA certificate; "+
		"set it to the mount and root/%s, for example pki/root/%[2]s, or to the mount and issuer/NAME/%[2]s", text, signs)
}

// withoutVersion is a path as the client takes it: without /v1/, which users write because Gloo Mesh 1.x asked for it.
func withoutVersion(text string) string {
	return strings.TrimPrefix(strings.Trim(text, "/"), "v1/")
}

// sign is the endpoint that signs.
func (p path) sign() string {
	if p.issuer != "" {
		return p.mount + "/issuer/" + p.issuer + "/" + signs
	}
	return p.mount + "/root/" + signs
}

// reads are the endpoints with the CA's certificate and with its chain. Everybody may read them.
func (p path) reads() []string {
	if p.issuer != "" {
		return []string{p.mount + "/issuer/" + p.issuer + "/json"}
	}
	return []string{p.mount + "/cert/ca", p.mount + "/cert/ca_chain"}
}
