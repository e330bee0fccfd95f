package vault

import (
	"errors"
	"net/url"
	"strings"
)

// errServer is about the field server of a VaultCA.
var errServer = errors.New("server is not the URL of a Vault; set it to a URL such as https://vault.example.com:8200, without user and query")

// ParseServer is the URL of a Vault in the one way in which it is written here, so that two can be compared: scheme and host
// in lower case, no port that is the scheme's own, and no slash at the end.
func ParseServer(text string) (string, error) {
	server, err := url.Parse(text)
	if err != nil || server.Hostname() == "" || server.Scheme != "https" && server.Scheme != "http" || server.User != nil ||
		server.RawQuery != "" || strings.ContainsFunc(text, notInServer) {
		return "", errServer
	}
	port := map[string]string{"https": ":443", "http": ":80"}[server.Scheme]
	server.Host = strings.TrimSuffix(strings.ToLower(server.Host), port)
	return strings.TrimRight(server.String(), "/"), nil
}

// notInServer are the characters that the URL of a Vault does not have: it is shown in commands to be copied.
func notInServer(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~:/[]", r))
}

// Encrypted reports whether a server, as ParseServer has it, is reached by TLS.
func Encrypted(server string) bool { return strings.HasPrefix(server, "https://") }
