package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRelayFrom: while no agent is connected, the address that agents dial is tried, and the first step that fails is told.
func TestRelayFrom(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	client := sandboxtest.Clientset(t, config)
	away := clustersThatAre(multiclusterv1alpha1.ConnectionStateLost)
	assert.Nil(t, relayFrom(t.Context(), nil, Options{}), "there is no relay")
	assert.Nil(t, relayFrom(t.Context(), append(clustersThatAre(multiclusterv1alpha1.ConnectionStateConnected), away...), Options{}), "an agent proves that the address is right")

	for name, c := range map[string]struct {
		serve func(t *testing.T, listener net.Listener)
		code  snapshot.Code
		what  string
	}{
		"nobody there": {nil, snapshot.RelayUnreachable, "TCP: "},
		"no TLS":       {answer, snapshot.RelayNotTrusted, "TLS: "},
		"another":      {serveTLS("another.example"), snapshot.RelayNotTrusted, "another.example"},
		"hub":          {serveTLS(""), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			created, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "relay-"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			namespace := created.Name
			options := Options{Config: config, Namespace: namespace, Timeout: time.Minute}
			none := relayFrom(t.Context(), away, options)
			require.NotNil(t, none)
			assert.Contains(t, none.Untried, "there is no Service "+namespace+"/"+snapshot.RelayService)

			service, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayService},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: snapshot.RelayPort}}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			host := ownAddress(t)
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: host}}
			_, err = client.CoreV1().Services(namespace).UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
			require.NoError(t, err)
			address := net.JoinHostPort(host, strconv.Itoa(snapshot.RelayPort))
			if c.serve != nil {
				c.serve(t, sandboxtest.Listen(t, address))
			}
			found := relayFrom(t.Context(), away, options)
			require.NotNil(t, found)
			assert.Equal(t, address, found.Address)
			assert.Equal(t, c.code, found.Failed, found.What)
			assert.Contains(t, found.What, c.what)
		})
	}
}

// ownAddress is an address of this machine that nobody else uses: the port of agents is always the same.
func ownAddress(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(sandboxtest.Address(t))
	require.NoError(t, err)
	n, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	return net.IPv4(127, byte(n>>8), byte(n), 1).String()
}

func clustersThatAre(state multiclusterv1alpha1.ConnectionState) []explain.CheckedCluster {
	return []explain.CheckedCluster{{Name: string(state), Connection: &multiclusterv1alpha1.Connection{State: state}}}
}

// answer says something that is not TLS.
func answer(t *testing.T, listener net.Listener) {
	t.Helper()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
}

// serveTLS serves TLS under a name; empty: that of the hub, whichever is asked for.
func serveTLS(name string) func(*testing.T, net.Listener) {
	return func(t *testing.T, listener net.Listener) {
		t.Helper()
		config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			shown := name
			if shown == "" {
				shown = hello.ServerName
			}
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				return nil, err
			}
			template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{shown}, NotAfter: time.Now().Add(time.Hour)}
			raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
			return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
		}}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					_ = tls.Server(conn, config).HandshakeContext(t.Context())
					_ = conn.Close()
				}()
			}
		}()
	}
}
