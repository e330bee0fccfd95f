package snapshot

// Derived is a List of values that are made one by one from the elements of
// another List, the sources, and made again only for a source that is another
// one than before. The zero Derived is empty.
type Derived[S, V comparable] struct {
	// Values are in the order of the sources.
	Values  List[V]
	sources List[S]
}

// Update makes the values of the given sources, and reports whether any value is
// new or gone. No two sources have the same key. Compute is called with a source
// and with the value of that key before, or the zero V.
func (d *Derived[S, V]) Update(sources List[S], key func(S) string, compute func(s S, old V) V) bool {
	if d.sources.Same(sources) {
		return false
	}
	var none S
	moved := lookup[S, V]{derived: d, key: key}
	changed := d.sources.Len() != sources.Len()
	values := Project(d.sources, sources, d.Values, func(s, old S, value V) V {
		if s == old {
			return value
		}
		changed = true
		if k := key(s); old == none || key(old) != k {
			if old, value = moved.find(k); s == old {
				return value
			}
		}
		return compute(s, value)
	})
	d.sources, d.Values = sources, values
	return changed
}

// lookup finds values by key, where a source is in another place than before.
type lookup[S, V comparable] struct {
	derived *Derived[S, V]
	key     func(S) string
	index   map[string]int
	sources []S
	values  []V
}

func (l *lookup[S, V]) find(key string) (s S, v V) {
	if l.index == nil {
		l.sources, l.values = l.derived.sources.Slice(), l.derived.Values.Slice()
		l.index = make(map[string]int, len(l.sources))
		for i, s := range l.sources {
			l.index[l.key(s)] = i
		}
	}
	if i, ok := l.index[key]; ok {
		return l.sources[i], l.values[i]
	}
	return s, v
}
