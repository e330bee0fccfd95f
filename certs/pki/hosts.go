package pki

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Bounds of the names in a request or a certificate. The lengths of a SPIFFE identity and a trust domain are those of the
// SPIFFE standard.
const (
	maxHosts       = 32
	maxSPIFFE      = 2048
	maxTrustDomain = 255
)

const spiffeScheme = "spiffe://"

// TrustDomain is the trust domain of a SPIFFE identity such as spiffe://cluster.local/ns/istio-system/sa/istiod, and
// whether it is a well-formed one.
func TrustDomain(host string) (string, bool) {
	rest, found := strings.CutPrefix(host, spiffeScheme)
	domain, path, _ := strings.Cut(rest, "/")
	if !found || len(host) > maxSPIFFE || !isTrustDomain(domain) || path == "" {
		return "", false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Trim(segment, letters+strings.ToUpper(letters)+digits+"-._") != "" {
			return "", false
		}
	}
	return domain, true
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

// isTrustDomain: a trust domain that begins with a dot would permit all domains below it as a name constraint.
func isTrustDomain(domain string) bool {
	return domain != "" && len(domain) <= maxTrustDomain && strings.Trim(domain, letters+digits+"-._") == "" &&
		!strings.HasPrefix(domain, ".") && !strings.HasSuffix(domain, ".") && !strings.Contains(domain, "..")
}

// names are the subject alternative names of a certificate or request.
type names struct {
	uris []*url.URL
	dns  []string
}

// parseHosts reads SPIFFE identities and DNS names, ascending and without duplicates.
func parseHosts(object string, hosts []string) (names, error) {
	hosts = sorted(hosts)
	if len(hosts) == 0 {
		return names{}, &Error{Object: object, Reason: Missing, Problem: "names nobody", Next: "give it a SPIFFE identity or a DNS name"}
	}
	if len(hosts) > maxHosts {
		return names{}, &Error{
			Object: object, Reason: Unreadable, Problem: fmt.Sprintf("has %d names, more than %d", len(hosts), maxHosts),
			Next: "ask for fewer",
		}
	}
	var out names
	for _, host := range hosts {
		if _, ok := TrustDomain(host); ok {
			uri, err := url.Parse(host)
			if err != nil || uri.String() != host {
				return names{}, badHost(object, host)
			}
			out.uris = append(out.uris, uri)
			continue
		}
		if len(validation.IsDNS1123Subdomain(host)) > 0 {
			return names{}, badHost(object, host)
		}
		out.dns = append(out.dns, host)
	}
	return out, nil
}

func badHost(object, host string) error {
	return &Error{
		Object: object, Reason: Unreadable, Problem: "has the name " + shown(host) + ", which is neither a SPIFFE identity nor a DNS name",
		Next: "use a name such as spiffe://cluster.local/ns/istio-system/sa/istiod", Have: []string{host},
	}
}

// hostsOf are the names as strings, ascending and without duplicates.
func hostsOf(uris []*url.URL, dns []string) []string {
	out := slices.Clone(dns)
	for _, uri := range uris {
		out = append(out, uri.String())
	}
	return sorted(out)
}

// sorted is a sorted copy without duplicates.
func sorted(items []string) []string {
	items = slices.Clone(items)
	slices.Sort(items)
	return slices.Compact(items)
}

// without are the items that others lacks.
func without(items, others []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return slices.Contains(others, item) })
}
