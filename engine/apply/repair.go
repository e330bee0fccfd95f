package apply

import (
	"context"
	"encoding/json"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// repair is a request that puts an object back as it was: somebody else has changed or deleted it since.
type repair struct {
	of      mirror.ID
	wanted  *snapshot.Object
	missing bool
}

// repair says whether the request that was decided on is one; nil if it is not, or if nobody asks. Only generated objects in
// registered clusters count.
func (c *cluster) repair(f *facts, d *decision) *repair {
	wanted := f.content
	if !c.ExplainRepairs || c.name == "" || d.step.verb != writeObject || wanted == nil || d.step.content != wanted || f.unsure {
		return nil
	}
	// It was found or written just like that before.
	if f.current == nil || f.current.Content != wanted.Content || f.history.refusal != nil {
		return nil
	}
	return &repair{of: f.id, wanted: &snapshot.Object{Ref: f.id.Ref(c.name), Content: wanted.Content}, missing: f.live == nil}
}

// explainTimeout bounds how long the repair waits for that.
const explainTimeout = 2 * time.Second

// explain reads what somebody else did to the object. It may be called on nil. What cannot be read does not keep the object from
// being repaired.
func (r *repair) explain(ctx context.Context, c *kube.Client, s *shared) *snapshot.Drift {
	if r == nil {
		return nil
	}
	drift := &snapshot.Drift{Ref: r.wanted.Ref, State: snapshot.DriftChanged}
	if r.missing {
		drift.State = snapshot.DriftMissing
		return drift
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	path := r.of.Path("")
	raw, err := c.Get().AbsPath(path[:len(path)-1]...).Param("fieldSelector", "metadata.name="+r.of.Name).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return drift
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(raw, &list) != nil || len(list.Items) != 1 {
		return drift
	}
	read, err := differenceOf(list.Items[0], r.wanted, s.plane())
	switch {
	case err != nil:
		return drift
	case len(read.Fields) == 0: // what was seen of it is not the latest
		return nil
	}
	return &read
}
