package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
)

// awaitVirtualMesh waits until the VirtualMesh has the state that follows from the
// roots of the two istiods: INVALID with both fingerprints if they are not the same,
// on itself, its members and the services that it federates.
func (w *environment) awaitVirtualMesh() {
	w.t.Helper()
	roots := map[string]bool{}
	for _, cluster := range []string{"cluster-1", "cluster-2"} {
		roots[w.root(cluster)] = true
	}
	if len(roots) == 1 {
		w.awaitState("virtualmeshes", "virtual-mesh", "ACCEPTED")
		return
	}
	w.awaitState("virtualmeshes", "virtual-mesh", "INVALID")
	w.until("the roots are compared", func(ctx context.Context) error {
		vm, err := w.object("cluster-1", kube.Policies("virtualmeshes"), mgmt, "virtual-mesh")
		if err != nil {
			return err
		}
		reasons := []any{field(vm, "status", "errors"), field(vm, "status", "meshes", "istiod-istio-system-cluster-1.gloo-mesh.", "errors")}
		destinations, err := w.clients["cluster-1"].List(ctx, kube.Discovery("destinations"), mgmt)
		if err != nil {
			return err
		}
		for _, d := range destinations {
			if field(&d, "status", "appliedFederation") != nil {
				reasons = append(reasons, field(&d, "status", "appliedFederation", "errors"))
			}
		}
		for _, list := range reasons {
			for root := range roots {
				if !strings.Contains(fmt.Sprint(list), root[:8]) {
					return fmt.Errorf("root %s is not in %v", root, list)
				}
			}
		}
		return nil
	})
	for root := range roots {
		require.Contains(w.t, w.must("describe", "virtualmesh", "virtual-mesh", "--context", "cluster-1").stdout, root[:8])
	}
}

// root is the SHA-256 fingerprint of the root of a cluster's istiod.
func (w *environment) root(cluster string) string {
	w.t.Helper()
	var text string
	w.until("istiod of "+cluster+" writes its root", func(context.Context) error {
		o, err := w.object(cluster, core("configmaps"), "istio-system", "istio-ca-root-cert")
		if err == nil {
			text = fmt.Sprint(field(o, "data", "root-cert.pem"))
		}
		return err
	})
	block, rest := pem.Decode([]byte(text))
	require.NotNil(w.t, block, text)
	require.Empty(w.t, rest, "one certificate")
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}
