package explain

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// callersText names the callers of a rule one by one.
func callersText(anyone bool, sources []snapshot.Source, byAccount bool) []string {
	if anyone {
		return []string{"anyone"}
	}
	callers := []string{}
	for _, s := range sources {
		within := ""
		if len(s.Identities) > 0 && len(s.Namespaces) > 0 {
			within = " in namespace " + strings.Join(s.Namespaces, " or ")
		}
		for _, i := range s.Identities {
			text := identityText(i) + within
			if byAccount {
				text = i.ServiceAccount + "." + i.Namespace + "." + i.TrustDomain
			}
			callers = append(callers, text)
		}
		for _, namespace := range s.Namespaces {
			if within != "" {
				break
			}
			callers = append(callers, "namespace "+namespace)
		}
	}
	if len(callers) == 0 {
		return []string{"nobody"}
	}
	// Clusters that share a trust domain are one to a certificate.
	slices.Sort(callers)
	return slices.Compact(callers)
}

// identityText is an identity as in certificates, with * for any.
func identityText(i snapshot.Identity) string {
	if i.TrustDomain == snapshot.NoTrustDomain {
		return "service account " + orAny(i.Namespace) + "/" + orAny(i.ServiceAccount) + " of cluster " + i.Cluster
	}
	domain, cluster := i.InCluster()
	in := ""
	if cluster != "" {
		in = " in " + cluster
	}
	switch {
	case i.Namespace == "":
		return "spiffe://" + domain + "/*" + in
	case i.ServiceAccount == "":
		return "spiffe://" + domain + "/ns/" + i.Namespace + "/*" + in
	}
	return principal(domain, i.Namespace, i.ServiceAccount) + in
}

// principal is the identity in a workload's certificate.
func principal(trustDomain, namespace, account string) string {
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
}
