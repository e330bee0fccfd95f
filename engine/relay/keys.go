package relay

// keys are names in the order in which they came, each once.
type keys struct {
	order []Key
	has   map[Key]bool
}

func (k *keys) len() int { return len(k.has) }

func (k *keys) add(key Key) {
	if k.has[key] {
		return
	}
	if k.has == nil {
		k.has = map[Key]bool{}
	}
	k.has[key] = true
	k.order = append(k.order, key)
}

func (k *keys) pop() (Key, bool) {
	if len(k.order) == 0 {
		return Key{}, false
	}
	first := k.order[0]
	k.order = k.order[1:]
	delete(k.has, first)
	return first, true
}
