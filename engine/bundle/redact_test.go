package bundle

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// key is a private key, as lines of base64.
const key = `MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPLANTEDPLANTEDPL
ANTEDPLANTEDPLANTEDqhRANCAAQPLANTEDPLANTEDPLANTEDPLANTEDPLANTED2x
PLANTED=`

// planted is in each secret of the tests.
var planted = regexp.MustCompile(`(?i)planted`)

// jwt is a token of a ServiceAccount.
const jwt = "eyJhbGciOiJSUzI1NiIsPLANTED.eyJzdWIiOiJzeXN0ZW0iPLANTED.c2lnbmF0dXJlPLANTED-_w"

func TestRedact(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN EC PRIVATE KEY-----\n" + key + "\n-----END EC PRIVATE KEY-----"
	for name, text := range map[string]string{
		"PEM":                         "before\n" + pem + "\nafter",
		"PEM of PKCS 8":               "before -----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY----- after",
		"PEM with headers":            "before -----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n" + key + "\n-----END RSA PRIVATE KEY----- after",
		"PEM in JSON":                 `before {"key":` + quoted(pem) + `} after`,
		"PEM without an end":          "before\n-----BEGIN PRIVATE KEY-----\n" + key + "\n2026-01-02 after",
		"PEM without a beginning":     "before\n" + key + "\n-----END PRIVATE KEY-----\nafter",
		"PEM in base64":               "before client-key-data: " + base64.StdEncoding.EncodeToString([]byte("-----BEGIN RSA PRIVATE KEY-----PLANTED")) + " after",
		"JWT":                         "before token is " + jwt + " after",
		"JWT in JSON":                 `before {"msg":"got ` + jwt + `"} after`,
		"bearer token":                "before Authorization: Bearer PLANTED-0123456789 after",
		"bearer token in JSON":        `before {"Authorization":["Bearer PLANTED-0123456789"]} after`,
		"basic credentials":           "before authorization: Basic UExBTlRFRPLANTED== after",
		"token of an agent":           "before mr1.plane-1.cluster-2.abcdefgplantedplanted.plantedplanted234567 after",
		"token of Vault":              "before hvs.CAESIPLANTEDPLANTEDPLANTED0123 after",
		"old token of Vault":          "before s.PLANTEDPLANTEDPLANTED0123 after",
		"header of Vault":             "before X-Vault-Token: PLANTED-0123 after",
		"password in a URL":           "before https://admin:PLANTED@db.example.com/x after",
		"token in a URL":              "before https://PLANTED@git.example.com/x after",
		"password with signs":         `before postgres://u:p/PLANTED!$@db after`,
		"token in a query":            "before GET /x?access_token=PLANTED after",
		"field of JSON":               `before {"password":"PLANTED","clientSecret": "PLANTED \"PLANTED\" x"} after`,
		"field of JSON in JSON":       `before {"msg":"{\"token\":\"PLANTED\"}"} after`,
		"field of YAML":               "before\n  password: PLANTED\n  token: 'PLANTED x'\nafter",
		"field of a kubeconfig":       "before\n    token: PLANTED\n    client-key-data: PLANTED\nafter",
		"flag":                        "before --token=PLANTED --admin-password PLANTED after",
		"environment":                 "before CA_PASSWORD=PLANTED VAULT_TOKEN=\"PLANTED\" after",
		"attribute of slog":           "before time=x level=INFO token=PLANTED apiKey=PLANTED after",
		"cookie":                      "before Cookie: PLANTED after",
		"ServiceAccount in a message": `before error="token \"` + jwt + `\" has expired" after`,
	} {
		got := string(Redact([]byte(text)))
		assert.False(t, planted.MatchString(got), "%s: %s", name, got)
		assert.True(t, strings.HasPrefix(got, "before"), "%s: %s", name, got)
		assert.Contains(t, got, redacted, name)
		assert.Contains(t, got, "after", "%s: more is gone than the secret: %s", name, got)
	}
}

// TestRedactKeepsTheRest: what helps to find out what went wrong stays.
func TestRedactKeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"time":"2026-01-02T15:04:05Z","level":"WARN","msg":"a cluster is not read","cluster":"cluster-2","reason":"the token expired at 2026-01-02T15:04:05Z"}`,
		`Secret gloo-mesh/cluster-1: its kubeconfig Secret is missing; run meshctl cluster register`,
		"no answer from https://172.18.0.102:6443; the cluster refuses the credential",
		"VirtualService cluster-1/bookinfo/reviews: http[0].route[0].weight: in force 75, wanted 60",
		"spiffe://cluster.local/ns/bookinfo/sa/reviews may call GET /api/v1",
		"image: registry.example/istio/pilot@sha256:4f1c09aa4f1c09aa",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	} {
		assert.Equal(t, text, string(Redact([]byte(text))))
	}
}

// TestRedactedJSONIsJSON: values go, and the form stays.
func TestRedactedJSONIsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(map[string]any{
		"a": "password=PLANTED", "b": []string{"Bearer PLANTED-012345", "-----BEGIN PRIVATE KEY-----\n" + key}, "token": "PLANTED",
		"c": map[string]string{"url": "https://u:PLANTED@x/y", "d": `token="PLANTED"`, "e": "token: PLANTED"},
	})
	assert.NoError(t, err)
	got := Redact(text)
	assert.True(t, json.Valid(got), string(got))
	assert.False(t, planted.Match(got), string(got))
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// FuzzRedact: any text is redacted in time, and what was redacted stays so.
func FuzzRedact(f *testing.F) {
	f.Add("token: " + jwt)
	f.Add(`{"password":"a\"b","x":"--token y"}`)
	f.Fuzz(func(t *testing.T, text string) {
		once := Redact([]byte(text))
		assert.NotContains(t, string(once), jwt)
		_ = Redact(once)
	})
}
