package store

// Options are the store's options with defaults filled in, and the memory
// limit and policy as they are now.
func (st *Store) Options() Options {
	o := st.opts
	o.MemoryBytes = st.limit.Load()
	o.Policy = Policy(st.policy.Load())
	return o
}
