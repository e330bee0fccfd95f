package explain

// describer describes the objects of an Index, each with all that is known of it.
type describer struct{ *Index }

func describing(x *Index) describer { return describer{x} }
