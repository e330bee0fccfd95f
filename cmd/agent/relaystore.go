package agent

import (
	"context"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/agent"
	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	relay "github.com/meshctl/meshctl/engine/relay/agent"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// RelayAccount is Account for an agent that also speaks for its cluster.
func RelayAccount(image string) *registration.Agent {
	out := Account(image)
	out.RelayRules = slices.Concat(enroll.KeeperRules(), relay.DiskRules())
	out.Limits = agent.RelayLimits
	return out
}

// RelayStore is what knows the agents of a management plane, with a client of its cluster.
func RelayStore(client kube.Clientset, plane snapshot.Plane) registration.RelayStore {
	return relayStore{&enroll.Store{Client: client, Namespace: plane.Namespace, Plane: plane.ID, Now: time.Now}}
}

// relayStore is an enroll.Store as registration sees it.
type relayStore struct{ *enroll.Store }

// Invite implements registration.RelayStore.
func (s relayStore) Invite(ctx context.Context, cluster, uid string, lasts time.Duration) (token string, root []byte, err error) {
	made, err := s.Store.Invite(ctx, cluster, uid, lasts)
	if err != nil {
		return "", nil, err
	}
	root, err = s.HubRoot(ctx)
	return made.Text(), root, err
}

// HubRoot implements registration.RelayStore.
func (s relayStore) HubRoot(ctx context.Context) ([]byte, error) {
	roots, _, err := s.Root(ctx)
	if err != nil {
		return nil, err
	}
	return roots.PEM(), nil
}

// Enrolled implements registration.RelayStore.
func (s relayStore) Enrolled(ctx context.Context, cluster string) (uid string, err error) {
	r, err := s.Record(ctx, cluster)
	return r.UID, err
}
