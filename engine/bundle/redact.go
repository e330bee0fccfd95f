package bundle

import (
	"bytes"
	"regexp"
	"slices"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// rule replaces what may be a secret.
type rule struct {
	find *regexp.Regexp
	with string
	// needs are texts in lower case of which a line has one, or nothing in it is replaced: most lines have none, and looking
	// for these is a hundred times as fast.
	needs []string
}

// secretName is the end of the name of a field whose value is a secret, with its colon or equals sign.
const (
	secretNames = `(?:pass(?:word|wd|phrase)?|token|api[-_]?key|access[-_]?key|private[-_]?key|secret[-_]?key|key[-_]?data|client[-_]?secret|` +
		`secret[-_]?id|credentials?|authorization|cookie)`
	secretField = `(` + secretNames + `[\w.-]*`
)

// secretWords are parts of all secretNames.
var secretWords = []string{"pass", "token", "key", "secret", "credential", "authorization", "cookie"}

// keyRules are about private keys in PEM, over several lines: whole, without an end, and without a beginning.
var keyRules = []rule{
	{find: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?-----END [A-Z0-9 ]*PRIVATE KEY-----`), with: redacted},
	{find: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[^-"']*`), with: redacted},
	{find: regexp.MustCompile(`(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])+)+(?:[A-Za-z0-9+/=]+(?:\s|\\[nr])+)?-----END [A-Z0-9 ]*PRIVATE KEY-----`), with: redacted},
}

// lineRules are about one line, and applied in this order. A rule may take more than a secret, never less.
var lineRules = []rule{
	// PEM in base64, as in a kubeconfig: it begins with "-----BEGIN".
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*`), redacted, []string{"ls0tls1crudjti"}},
	// JSON Web Tokens: those of ServiceAccounts and users.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_=-]{5,}\.[A-Za-z0-9_=-]{5,}(?:\.[A-Za-z0-9_=-]*)?`), redacted, []string{"eyj"}},
	// Tokens of agents, and of Vault.
	{regexp.MustCompile(`mr1\.[a-z0-9-]+\.[a-z0-9-]+\.[a-z2-7]+\.[a-z2-7]+`), redacted, []string{"mr1."}},
	{regexp.MustCompile(`\b(?:hvs|hvb|hvr|s|b|r)\.[A-Za-z0-9_-]{20,}`), redacted, []string{"hvs.", "hvb.", "hvr.", "s.", "b.", "r."}},
	// Headers.
	{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)(\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}${2}" + redacted, []string{"bearer", "basic", "negotiate"}},
	// User and password in URLs, and tokens as users.
	{regexp.MustCompile(`://(?:[^/\s"'\\@]+|[^/\s:"'\\@]+:[^\s"'\\@]*)@`), "://" + redacted + "@", []string{"@"}},
	// Fields, in JSON within JSON, JSON, YAML, flags, environments and queries of URLs. A value in quotes ends with them or the
	// line, and another one with what can be none of a value.
	{regexp.MustCompile(`(?im)` + secretField + `\\?["']?\s*[:=]\s*)\\"(?:[^"\\\n]|\\\\\\"|\\[^"\n])*(?:\\"|$)`), `${1}\"` + redacted + `\"`, secretWords},
	{regexp.MustCompile(`(?im)` + secretField + `["']?\s*[:=]\s*)"(?:[^"\\\n]|\\.)*(?:"|$)`), `${1}"` + redacted + `"`, secretWords},
	{regexp.MustCompile(`(?im)` + secretField + `["']?\s*[:=]\s*)'[^'\n]*(?:'|$)`), `${1}'` + redacted + `'`, secretWords},
	{regexp.MustCompile(`(?i)` + secretField + `["']?\s*[:=]\s*)[^\s"'\\,;&{}\[\]]+`), "${1}" + redacted, secretWords},
	{regexp.MustCompile(`(?i)(--[\w-]*` + secretNames + `\s+)[^\s"'\\,;&{}\[\]-][^\s"'\\,;&{}\[\]]*`), "${1}" + redacted, []string{"--"}},
}

// keyMark is in all private keys in PEM.
var keyMark = []byte("PRIVATE KEY-----")

// Redact replaces what may be a secret in a text: private keys, tokens, credentials in headers and URLs, and the values of
// fields that are named like secrets. It knows them by their form only; a secret that looks like any other word stays.
func Redact(text []byte) []byte {
	for _, r := range keyRules {
		if bytes.Contains(text, keyMark) {
			text = r.find.ReplaceAll(text, []byte(r.with))
		}
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		lower := bytes.ToLower(line)
		for _, r := range lineRules {
			if slices.ContainsFunc(r.needs, func(part string) bool { return bytes.Contains(lower, []byte(part)) }) {
				line = r.find.ReplaceAll(line, []byte(r.with))
			}
		}
		out = append(out, line...)
	}
	return out
}
