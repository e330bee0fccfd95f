package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Credential is what a stored kubeconfig may contain: the server, how to verify it,
// and the token to send.
type Credential struct {
	// Server is an https URL without user, query or fragment.
	Server string
	// ServerName is the name to expect in the server's certificate; empty
	// for the host of Server.
	ServerName string
	// CA are PEM certificates; empty for the roots of the system.
	CA []byte
	// Token is a bearer token. It is never printed.
	Token string
}

// String names the server only: a Credential may end up in a log.
func (c Credential) String() string { return c.Server }

// GoString keeps the token out of %#v.
func (c Credential) GoString() string { return "cluster.Credential{" + c.Server + "}" }

// SameEndpoint reports whether both have the same server, server name and CA, so
// that one client can be used for both.
func (c *Credential) SameEndpoint(o *Credential) bool {
	return c != nil && o != nil && c.Server == o.Server && c.ServerName == o.ServerName && bytes.Equal(c.CA, o.CA)
}

// Lifetime is when a token was issued and when it expires, as its cluster's
// clock has it. A zero Expires means that it does not expire.
type Lifetime struct {
	Issued  time.Time
	Expires time.Time
}

// IsZero reports whether nothing is known: the token does not expire.
func (l Lifetime) IsZero() bool { return l.Expires.IsZero() }

// Granted is how long the token is valid in all; zero if it does not expire.
func (l Lifetime) Granted() time.Duration {
	if l.IsZero() {
		return 0
	}
	return l.Expires.Sub(l.Issued).Round(time.Second)
}

// RenewAt is one third into the life of the token, so that at any time two thirds of it
// are left for a time in which nothing renews it. It is a little earlier for some clusters
// than for others, so that a fleet registered at once is not renewed at once. The zero
// time if the token does not expire.
func (l Lifetime) RenewAt(cluster string) time.Time {
	if l.IsZero() {
		return time.Time{}
	}
	life := l.Expires.Sub(l.Issued)
	sum := sha256.Sum256([]byte(cluster))
	earlier := life / 10 * time.Duration(sum[0]) / 256
	return l.Issued.Add(life/3 - earlier)
}

// Overdue reports whether the token should have been renewed for long: a half of its life
// is over. Nothing renews it, or renewing it fails.
func (l Lifetime) Overdue(now time.Time) bool {
	return !l.IsZero() && now.After(l.Issued.Add(l.Expires.Sub(l.Issued)/2))
}

// secretLifetime reads the annotations of a kubeconfig Secret, or else the
// token's own claims. Secrets written by hand have no annotations, and legacy
// tokens do not expire.
func secretLifetime(secret *corev1.Secret, token string) Lifetime {
	issued, err1 := time.Parse(time.RFC3339, secret.Annotations[IssuedAnnotation])
	expires, err2 := time.Parse(time.RFC3339, secret.Annotations[ExpiresAnnotation])
	if err1 == nil && err2 == nil && issued.Before(expires) {
		return Lifetime{Issued: issued, Expires: expires}
	}
	return tokenLifetime(token)
}

// tokenLifetime reads the claims of a token without checking its signature:
// they only decide when to request the next one.
func tokenLifetime(token string) Lifetime {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Lifetime{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Lifetime{}
	}
	var claims struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Issued <= 0 || claims.Expires <= claims.Issued {
		return Lifetime{}
	}
	return Lifetime{Issued: time.Unix(claims.Issued, 0), Expires: time.Unix(claims.Expires, 0)}
}
