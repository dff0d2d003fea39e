package store

// onceLarge is the rest of once for an effect that writes a large value. Its
// pieces may need more memory than is free, and nothing may wait while keys are
// locked: so they are written first, and count if the key still is as f saw it, in
// the view was.
func (ss *Session) onceLarge(k, op *Key, e *Effect, was *View) (result []byte, again bool, st Status) {
	defer ss.chunking.Store(0)
	if err := ss.checkSizes(k, e.Write); err != nil {
		return nil, false, ss.fail(err)
	}
	if !ss.roomFor(len(e.Write.Value)) {
		return nil, false, Cold
	}
	pieces := entry{value: e.Write.Value}
	if st := ss.writeChunks(k, &pieces); st != OK {
		return nil, false, st
	}
	result, again, st = ss.completeLarge(k, op, e, was, pieces.value)
	if again || st != OK {
		ss.dropChunks(k.Place, pieces.value)
	}
	return result, again, st
}

// completeLarge writes the record of a large value and the operation's result.
func (ss *Session) completeLarge(k, op *Key, e *Effect, was *View, manifest []byte) (result []byte, again bool, st Status) {
	keys := [2]Key{*k, *op}
	if st := ss.Lock(keys[:]); st != OK {
		return nil, false, st
	}
	done, object := ss.tx.find(op), ss.tx.find(k)
	switch {
	case done.view.live:
		result = ss.arena.keep(done.view.Value)
		ss.Abort()
		return result, true, OK
	case object.view.live != was.live || was.live && object.view.Version != was.Version:
		ss.Abort()
		return nil, false, Conflict
	}
	w, small := *e.Write, *e
	w.Value, small.Write = manifest, &w
	if st := ss.effect(k, op, &small); st != OK {
		ss.Abort()
		return nil, false, st
	}
	object.e.Chunked = true
	if st := ss.Commit(); st != OK {
		return nil, false, st
	}
	return done.e.value, false, OK
}
