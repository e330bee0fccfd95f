package registration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"
)

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "localhost": true, "LOCALHOST.": true,
		"api.localhost": true, "0.0.0.0": true, "::": true,
		"128.0.0.1": false, "192.0.2.2": false, "fd00::2": false, "localhost.example": false, "kind-control-plane": false, "": false,
	} {
		assert.Equal(t, want, isLoopback(host), "%q", host)
	}
}

func TestOnThisMachine(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][2]string{
		"https://0.0.0.0:6550":   {"https://127.0.0.1:6550", "0.0.0.0"},
		"https://[::]:6550":      {"https://[::1]:6550", "::"},
		"https://127.0.0.1:6550": {"https://127.0.0.1:6550", ""},
		"https://api.example":    {"https://api.example", ""},
	} {
		got := onThisMachine(&rest.Config{Host: host})
		assert.Equal(t, want, [2]string{got.Host, got.ServerName}, host)
	}
	got := onThisMachine(&rest.Config{Host: "https://0.0.0.0:6550", TLSClientConfig: rest.TLSClientConfig{ServerName: "api.example"}})
	assert.Equal(t, "api.example", got.ServerName)
}

func TestAdviseAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ context, server, want string }{
		{"kind-east", "https://127.0.0.1:39999", "--api-server-address east-control-plane:6443: "},
		{"minikube", "https://127.0.0.1:32769", "--api-server-address $(minikube -p minikube ip):8443"},
		{"profile", "https://127.0.0.1:8443", "--api-server-address $(minikube -p profile ip):8443"},
		{"kind-", "https://127.0.0.1:39999", "--api-server-address HOST[:PORT] with an address"},
		{"tunnel", "https://localhost:16443", "--api-server-address HOST[:PORT] with an address"},
		{"", "https://localhost:8443", "--api-server-address HOST[:PORT] with an address"},
	} {
		assert.Contains(t, adviseAddress(c.context, c.server), c.want, "%+v", c)
	}
}
