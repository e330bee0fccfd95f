package snapshot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOutages: each cause has a word and a next step. Nobody is told to deregister a cluster that may come back.
func TestOutages(t *testing.T) {
	t.Parallel()
	for cause, want := range map[Code]struct {
		health     Health
		next, text string
	}{
		CredentialRefused:    {HealthDenied, "register --renew", "the cluster denies access: it is so; nothing is changed there"},
		PermissionsMissing:   {HealthDenied, "permissions", "the cluster denies access: it is so; nothing is changed there"},
		CredentialMissing:    {HealthInvalid, "restore the Secret", "the credential of the cluster cannot be used: it is so; nothing"},
		CredentialInvalid:    {HealthInvalid, "replaces the Secret", "the credential of the cluster cannot be used: it is so; nothing"},
		DifferentCluster:     {HealthInvalid, "look at what answers", "the credential of the cluster cannot be used: it is so; nothing"},
		ServerUnanswered:     {HealthUnreachable, "look at its API server", "the cluster is unreachable: it is so; nothing is changed there"},
		NameUnresolved:       {HealthUnreachable, "DNS", "the cluster is unreachable: it is so; nothing is changed there"},
		CertificateUntrusted: {HealthUnreachable, "certificate authority", "the cluster is unreachable: it is so; nothing is changed there"},
		AgentAway:            {HealthUnreachable, "its agent", "the cluster is unreachable: it is so; nothing is changed there"},
		StillRead:            {HealthUnknown, "wait", "the cluster is not read yet: it is so; nothing is changed there"},
		"":                   {HealthUnreachable, "meshctl cluster list", "the cluster is unreachable: it is so; nothing is changed there"},
	} {
		o := NewOutage("east", cause, "it is so")
		issue := o.Issue(Ref{Kind: KubernetesCluster, Name: "east"})
		assert.Equal(t, want.health, o.Health, cause)
		assert.Contains(t, o.Next, want.next, cause)
		assert.True(t, strings.HasPrefix(issue.Message, want.text), "%s: %s", cause, issue.Message)
		assert.True(t, strings.HasSuffix(issue.Hint, "requests go on as last written, and edits wait"), "%s: %s", cause, issue.Hint)
		if at := strings.Index(o.Next, "deregister"); at >= 0 {
			assert.Less(t, strings.Index(o.Next, "look at"), at, cause)
			assert.Equal(t, DifferentCluster, cause)
		}
	}
	assert.Nil(t, (&Cluster{Sync: Synced}).Outage())
	assert.Equal(t, "unreachable", (&Cluster{}).Unreachable())
	assert.Empty(t, (&Cluster{Sync: Synced}).Unreachable())
}
