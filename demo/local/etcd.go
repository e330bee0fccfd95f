package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
)

// etcdClient speaks with the cluster's etcd by its JSON gateway, see
// https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/.
type etcdClient struct {
	url  string
	http *http.Client
}

func (c *Cluster) etcdClient() (*etcdClient, error) {
	pair, err := tls.LoadX509KeyPair(c.pki.file("etcd.crt"), c.pki.file("etcd.key"))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: the certificate of etcd: %w", c.Name(), err)
	}
	ca, err := os.ReadFile(c.pki.file("etcd-ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: the certificate of etcd: %w", c.Name(), err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &etcdClient{"https://" + c.address("etcd") + "/v3/kv/", &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS13},
		DisableKeepAlives: true,
	}}}, nil
}

// keyValue is etcdserverpb.KeyValue as JSON.
type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value,omitempty"`
	ModRevision int64  `json:"mod_revision,string,omitempty"`
}

func (e *etcdClient) post(ctx context.Context, method string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := e.http.Do(request)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s: %s", method, response.Status, said)
	}
	if err := json.Unmarshal(said, answer); err != nil {
		return fmt.Errorf("etcd: %s: %w", method, err)
	}
	return nil
}

func (e *etcdClient) list(ctx context.Context, keysOnly bool) ([]keyValue, error) {
	var answer struct {
		KVs []keyValue `json:"kvs"`
	}
	end := []byte(registry)
	end[len(end)-1]++ // the first key after the prefix
	err := e.post(ctx, "range", map[string]any{"key": []byte(registry), "range_end": end, "keys_only": keysOnly}, &answer)
	return answer.KVs, err
}

func (e *etcdClient) revisions(ctx context.Context) (map[string]int64, error) {
	all, err := e.list(ctx, true)
	if err != nil {
		return nil, err
	}
	revisions := make(map[string]int64, len(all))
	for _, kv := range all {
		revisions[string(kv.Key)] = kv.ModRevision
	}
	return revisions, nil
}

// maxOperations is how many operations etcd accepts in a transaction, by default.
const maxOperations = 128

// restore writes the recorded values of keys, deletes those that have none, and records the new
// revisions.
func (e *etcdClient) restore(ctx context.Context, r *Recording, keys []string) error {
	for chunk := range slices.Chunk(keys, maxOperations) {
		var operations []map[string]any
		for _, key := range chunk {
			if value, ok := r.values[key]; ok {
				operations = append(operations, map[string]any{"request_put": keyValue{Key: []byte(key), Value: value}})
			} else {
				operations = append(operations, map[string]any{"request_delete_range": keyValue{Key: []byte(key)}})
			}
		}
		var answer struct {
			Header struct {
				Revision int64 `json:"revision,string"`
			} `json:"header"`
		}
		if err := e.post(ctx, "txn", map[string]any{"success": operations}, &answer); err != nil {
			return err
		}
		for _, key := range chunk {
			if _, ok := r.values[key]; ok {
				r.revisions[key] = answer.Header.Revision
			}
		}
	}
	return nil
}
