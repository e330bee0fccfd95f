package apply

import (
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file keeps the items of a cluster and the ledger in step.

// announce enters what an Output will provide.
func (c *cluster) announce(d *delta) {
	if c.name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range d.put {
		if names := (&content{Content: o.Content}).provides(c.name); len(names) > 0 {
			i := c.item(mirror.IDOf(o.Ref))
			c.ledger.announce(&i.party, without(names, i.provides(c.name)))
		}
	}
}

// put sets what is wanted for an item.
func (c *cluster) put(i *item, o *snapshot.Object, made *content) {
	c.ledger.announce(&i.party, without(made.provides(c.name), i.provides(c.name)))
	c.ledger.retract(&i.party, without(i.content.provides(c.name), made.provides(c.name)))
	c.ledger.intend(&i.party, i.content.needs(c.name), made.needs(c.name), i.current.needs(c.name), i.sending.needs(c.name))
	c.obstruct(i, false)
	i.put(o, made, time.Now())
	c.reports.inherit(i)
}

// unwant says that no object is wanted for an item.
func (c *cluster) unwant(i *item) {
	c.ledger.retract(&i.party, i.content.provides(c.name))
	c.ledger.intend(&i.party, i.content.needs(c.name), nil, i.current.needs(c.name), i.sending.needs(c.name))
	i.content, i.wide = nil, nil
	i.history.since = time.Time{}
	c.obstruct(i, false)
}

// obstruct enters whether there is an obstacle to what is wanted.
func (c *cluster) obstruct(i *item, obstructed bool) {
	if i.history.obstructed != obstructed {
		i.history.obstructed = obstructed
		c.ledger.holds(&i.party, obstructed)
	}
}

// provides are the names that the object provides, whatever becomes of a request that is on its way.
func (i *item) provides(cluster string) []name {
	names := i.current.provides(cluster)
	if i.sending == nil {
		return names
	}
	sent := i.sending.provides(cluster)
	return slices.DeleteFunc(names, func(n name) bool { return !contains(sent, n) })
}

// send enters what a request changes an object to.
func (i *item) send(s step) {
	switch {
	case i.cluster.cluster == "" || i.id.Kind.Info().Effect&snapshot.Relates == 0:
	case s.verb == object:
		i.sending = s.content
	case s.verb == remove:
		i.sending = &content{Content: &snapshot.Content{}}
	}
}

// sent says that it is known what became of a request: it is what is current.
func (c *cluster) sent(i *item) {
	if sending := i.sending; sending != nil {
		i.sending = nil
		c.ledger.intend(&i.party, sending.needs(c.name), i.content.needs(c.name), i.current.needs(c.name))
	}
}

// widened is the wanted content of an item with what the current one provides; nil if no content has both.
func (c *cluster) widened(i *item) *content {
	if i.wide == nil {
		spec := c.Widen(i.id.Kind, i.current.Spec, i.content.Spec)
		if spec == nil {
			return nil
		}
		wide := *i.content.Content
		wide.Spec = spec
		relations := i.content.relations().With(*i.current.relations())
		i.wide = &content{Content: &wide, named: &relations}
	}
	return i.wide
}

// found says that an object is as a content has it.
func (c *cluster) found(i *item, as *content) {
	defer c.sent(i)
	if i.current != as {
		c.ledger.wrote(&i.party, i.current, as, i.sending != nil, 0)
		i.current = as
		if as != i.wide {
			i.wide = nil // it has what another one provides
		}
	}
}

// learn enters that an object is to be read, because an earlier process may have written it
// and proxies use what it has.
func (c *cluster) learn(of mirror.ID) {
	if c.name == "" || of.Kind.Info().Effect&snapshot.Relates == 0 {
		return
	}
	if l, exists := c.remote.now.Conn.Find(of); exists && l.Ours() && l.Here && !l.Going {
		if i := c.items[of]; i == nil || i.current == nil {
			c.unread[of] = true
		}
	}
}

// reading reports whether it may have routes of an earlier process that were not read yet.
func (c *cluster) reading() bool {
	if c.name == "" || c.remote.closed || c.remote.gate.armed && !c.remote.gate.open() || c.reports.has(ofConnection) || c.remote.now.Suspended {
		return false
	}
	return len(c.unread) > 0 || c.remote.now.Connecting
}

// adopt enters what was read of an object that an earlier process has written: proxies use what it has.
func (c *cluster) adopt(i *item, r response) {
	if r.err != nil {
		// It may be gone, or the server does not answer: a write will tell.
		c.Log.Debug("object cannot be read before it is changed", "object", i.id.Ref(c.name).String(), "error", r.err)
		return
	}
	c.found(i, r.read)
}
