package migrate

import (
	"fmt"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// What clients use most goes with a yielding, so that few of them wait for a record when the target begins. But all of them wait for the
// yielding, and most of that was as it is now a moment before. So it is sent ahead, while the source still serves. The
// yielding then says which of it is not what it was any more, and brings that anew.
//
// To find that out, and to import it, takes longer than all else that they wait for. So the source looks only at what clients use most
// before it answers, and at the rest when the target serves: that is imported as if it had been pulled.
//
// Invariant: of what was sent ahead only that is imported whose version the source, having yielded, finds to be the one that it had
// before it was copied. A copy of what somebody was writing is torn, and what was removed must not come back.

// ahead is what was sent so.
type ahead struct {
	keys     []store.ArrivingKey
	versions []uint64
	entries  []extent
}

// extent is where an entry lies in all that was sent ahead: from which byte on, and how many it has.
type extent [2]uint32

// hotKeys is of how many keys, of those that are used most, clients wait for the judgement.
const hotKeys = 1024

// part divides it: what clients wait for, and the rest, which begins behind so many bytes.
func (a *ahead) part() (hot, rest ahead, until uint32) {
	n := min(hotKeys, len(a.keys))
	hot = ahead{a.keys[:n], a.versions[:n], a.entries[:n]}
	if n == len(a.keys) {
		return hot, rest, 0
	}
	return hot, ahead{a.keys[n:], a.versions[n:], a.entries[n:]}, a.entries[n][0]
}

// draftKeys is how many keys are copied under one guard.
const draftKeys = 256

// sendAhead sends the entries of keys in parts, as many as may go with a yielding.
func (s *Shelf) sendAhead(list []store.ArrivingKey, send func(part []byte) error) (sent ahead, err error) {
	r, err := s.borrow(&s.urgent)
	if err != nil {
		return sent, err
	}
	defer s.giveBack(r, &s.urgent)
	p, taken := newParts(send), 0
	for len(list) > 0 {
		some := list[:min(len(list), draftKeys)]
		list = list[len(some):]
		r.ss.Begin()
		r.ss.Draft(some, func(i int, version uint64, entry []byte) {
			if !goesAlong(entry, taken) {
				return
			}
			sent.keys, sent.versions = append(sent.keys, some[i]), append(sent.versions, version)
			sent.entries = append(sent.entries, extent{uint32(taken), uint32(len(entry))})
			p.addDraft(entry, version)
			taken += len(entry)
		})
		r.ss.End()
		if err := p.advanced(); err != nil {
			return sent, err
		}
	}
	return sent, p.flush()
}

// addDraft adds an entry as it was when it had a version: a transaction that changes nothing may have locked it since.
func (p *parts) addDraft(entry []byte, version uint64) {
	at := len(p.part)
	if p.add(entry); len(entry) > 0 {
		record.PtrOf(p.part[at:]).SetVersion(version)
	}
}

// outdated is what of it is not as it was, now that nobody writes it.
func (s *Shelf) outdated(sent *ahead) (entries []extent, keys []store.ArrivingKey, err error) {
	if len(sent.keys) == 0 {
		return nil, nil, nil
	}
	r, err := s.borrow(&s.urgent)
	if err != nil {
		return nil, nil, err
	}
	defer s.giveBack(r, &s.urgent)
	r.ss.Begin()
	defer r.ss.End()
	r.ss.Outdated(sent.keys, sent.versions, func(i int) {
		entries, keys = append(entries, sent.entries[i]), append(keys, sent.keys[i])
	})
	return entries, keys, nil
}

// appendValid appends what was sent ahead but for what is outdated.
func appendValid(b, sent []byte, outdated []extent) ([]byte, error) {
	at := uint64(0)
	for _, e := range outdated {
		from, end := uint64(e[0]), uint64(e[0])+uint64(e[1])
		if from < at || end > uint64(len(sent)) {
			return b, fmt.Errorf("%w: %d bytes from byte %d on of %d that were sent ahead are said to be outdated", peer.ErrMalformed, e[1], e[0], len(sent))
		}
		b = append(b, sent[at:from]...)
		at = end
	}
	return append(b, sent[at:]...), nil
}

// cutAt divides what was sent ahead.
func cutAt(sent []byte, at uint32) (hot, rest []byte, err error) {
	if uint64(at) > uint64(len(sent)) {
		return nil, nil, fmt.Errorf("%w: of %d bytes that were sent ahead the first %d are said to be judged", peer.ErrMalformed, len(sent), at)
	}
	return sent[:at], sent[at:], nil
}
