package store

// togetherTries is how often keys are read that others change meanwhile, before they are better locked.
const togetherTries = 4

// GetTogether is GetBatch of one moment: what it tells of all keys was so at the same time, unless a status says
// that something went wrong. False: others have changed some of them each time they were read.
//
// A record that has its address or its version still has had it all the time, and a key whose stripe has buried nobody
// was absent all the time. So all was so when the last key had been read.
func (ss *Session) GetTogether(keys []Key, views []View, st []Status) bool {
	for range togetherTries {
		ss.GetBatch(keys, views, st)
		if len(keys) == 1 || ss.tx.open || ss.stand(keys, views, st) {
			return true
		}
	}
	return false
}

// stand tells whether keys still are as they were read, or one could not be.
func (ss *Session) stand(keys []Key, views []View, st []Status) bool {
	same := true
	for i := range keys {
		switch {
		case st[i] != OK && st[i] != NotFound:
			return true
		case same:
			same = ss.stands(&keys[i], &views[i])
		}
	}
	return same
}

// stands tells whether a key still is as in a view of this round.
func (ss *Session) stands(k *Key, v *View) bool {
	if !v.live {
		same, st := ss.Unchanged(k, v)
		return same && st == OK
	}
	if ss.st.logged && v.at != 0 && ss.ix.First(k.Place) == v.at {
		return true // Nothing is changed where it lies.
	}
	ver, st := ss.Version(k)
	return st == OK && ver == v.Version
}
