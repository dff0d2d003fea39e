package meta

import (
	"context"
	"fmt"
	"slices"
)

// modelStep is something that can happen in a world.
type modelStep struct {
	name string
	kind modelKind
	do   func()
}

type modelKind int

const (
	client   modelKind = iota // what clients and operators want
	progress                  // what nodes and the coordinator do by themselves
	fault
	chore // what need not happen
)

type modelSteps []modelStep

func (s *modelSteps) add(kind modelKind, can bool, do func(), format string, args ...any) {
	if can {
		*s = append(*s, modelStep{fmt.Sprintf(format, args...), kind, do})
	}
}

// steps are all that can happen next.
func (w *modelWorld) steps() (all modelSteps) {
	for _, n := range w.nodes {
		w.clientSteps(n, &all)
		w.nodeSteps(n, &all)
		w.faultSteps(n, &all)
	}
	for _, m := range w.now().AllMigrations() {
		w.migrationSteps(m, &all)
	}
	for _, r := range w.now().Recoveries {
		all.add(progress, r.Plan == nil, func() {
			_, err := w.term.SetPlan(context.Background(), r.Log, Plan{Cut: w.logs[r.Log].batch})
			w.try(err)
		}, "plan log %d", r.Log)
		all.add(progress, r.Done(), func() { w.try(w.term.Finish(context.Background(), r.Log)) }, "finish log %d", r.Log)
	}
	return all
}

func (w *modelWorld) clientSteps(n *modelNode, all *modelSteps) {
	for key := range modelKeys {
		if !n.serves(key) {
			continue
		}
		_, there := n.store.index[key]
		all.add(client, true, func() { n.write(key) }, "%s writes key %d", n.id, key)
		all.add(client, there, func() { n.remove(key) }, "%s deletes key %d", n.id, key)
	}
	for key := range modelKeys + 1 {
		ranges := modelRange(0).Union(modelRange(1))
		if key < modelKeys {
			ranges = modelRange(key)
		}
		owner, _ := w.now().Map.Owner(ranges[0].First)
		for _, o := range []MigrationOptions{{}, {Ownership: OwnershipLate}} {
			when := ""
			if o.late() {
				when = " in the end"
			}
			all.add(client, w.moves > 0 && owner != n.id && n.alive(), func() {
				w.moves--
				_, err := w.store.Migrate(context.Background(), MigrationRequest{Source: owner, Target: n.id, Ranges: ranges, Options: o})
				w.try(err)
			}, "%s is asked to give %d to %s%s", owner, key, n.id, when)
		}
	}
}

func (w *modelWorld) nodeSteps(n *modelNode, all *modelSteps) {
	if !n.works() {
		return
	}
	all.add(progress, n.seen != w.now(), n.see, "%s sees", n.id)
	all.add(chore, len(n.sent) > 0, n.drop, "%s drops what was sent", n.id)
	all.add(chore, true, func() { n.clean(false) }, "%s cleans", n.id)
	all.add(chore, true, func() { n.clean(true) }, "%s cleans and keeps tombstones", n.id)
	all.add(progress, len(n.seen.Leaving(n.id)) > 0, n.retract, "%s retracts", n.id)
	replays := len(n.shares(false)) > 0
	all.add(progress, replays, func() { n.replay(true) }, "%s replays", n.id)
	all.add(chore, replays, func() { n.replay(false) }, "%s replays half", n.id)
	all.add(progress, len(n.shares(true)) > 0, n.settle, "%s copies what it replayed", n.id)
}

func (w *modelWorld) faultSteps(n *modelNode, all *modelSteps) {
	s, alive := w.now(), n.alive()
	all.add(fault, n.up && w.falls > 0, func() { w.falls--; n.crash(false) }, "%s crashes", n.id)
	all.add(fault, n.up && w.falls > 0, func() { w.falls--; n.crash(true) }, "%s crashes and keeps side segments", n.id)
	others := !slices.ContainsFunc(w.nodes, func(o *modelNode) bool { return o.wiped }) // They have the copies.
	all.add(fault, n.up && w.falls > 0 && others, func() { w.falls--; n.lose() }, "%s crashes and loses its disk", n.id)
	all.add(fault, alive && n.up && w.falls > 0, func() { w.falls--; w.expire(n) }, "the lease of %s ends", n.id)
	all.add(progress, alive && !n.up, func() { w.expire(n) }, "the lease of the dead %s ends", n.id)
	dead := slices.Contains(s.Dead(), n.id)
	all.add(progress, !alive && !(dead && n.wiped), n.enter, "%s joins", n.id)
	must := fault
	if n.wiped {
		must = progress
	}
	all.add(must, dead, func() { w.recover(n, false) }, "%s is recovered", n.id)
	all.add(must, dead, func() { w.recover(n, true) }, "%s is recovered by one", n.id)
}

func (w *modelWorld) migrationSteps(m Migration, all *modelSteps) {
	ctx := context.Background()
	source, target := w.node(m.Source), w.node(m.Target)
	all.add(client, !m.Stage.Ended() && !m.Cancel, func() { w.try(w.store.CancelMigration(ctx, m.ID)) }, "migration %d is cancelled", m.ID)
	if (m.Stage == Wanted || m.Stage == Copying) && !source.alive() {
		all.add(fault, true, func() { w.try(w.term.FailMigration(ctx, m.ID, "dead")) }, "migration %d fails with its source", m.ID)
	}
	if m.Options.late() {
		w.lateSteps(m, all)
		return
	}
	if !target.works() {
		return
	}
	asked, asks := w.asked[m.ID]
	all.add(chore, m.Stage == Wanted && !asks, func() { w.asked[m.ID] = target.asks() }, "%s asks for %d", m.Target, m.ID)
	all.add(chore, source.works() && asks, func() { source.move(m, asked) }, "%s hears who asked and moves %d", m.Source, m.ID)
	if m.Stage == Wanted && source.works() {
		err := w.now().Ready(m)
		all.add(progress, err == nil, func() { source.move(m, target.asks()) }, "%s moves %d to %s", m.Source, m.ID, m.Target)
		all.add(progress, err != nil && !isNotYet(err), func() { w.try(target.member.FailMigration(ctx, m.ID, "no")) }, "migration %d fails", m.ID)
	}
	seen := target.seen.Migrations[m.ID]
	if seen.Stage != Moving || seen.TargetLog != target.log {
		return
	}
	a, stopped := target.arrivals[m.ID], target.stopped[m.ID]
	all.add(progress, a == nil && !stopped && !seen.Cancel && source.yielded(m.ID), func() { target.arrive(seen, source) }, "%s serves %d", m.Target, m.ID)
	all.add(progress, seen.Cancel && !stopped, func() { target.stopped[m.ID] = true }, "%s stops to serve %d", m.Target, m.ID)
	all.add(progress, stopped && m.Stage == Moving, func() {
		w.try(target.member.Return(ctx, m.ID, Plan{Cut: target.store.log.batch - 1}, "why"))
	}, "%s returns %d", m.Target, m.ID)
	if a == nil || stopped {
		return
	}
	w.sendSteps(m, a, all)
	whole := true
	for key := range modelKeys {
		if a.ranges.Contains(modelPlace(key)) && !a.pulled[key] {
			whole = false
			all.add(progress, source.yielded(m.ID), func() { target.pull(a, key, source) }, "%s pulls key %d", m.Target, key)
		}
	}
	all.add(progress, whole && !a.adopted, func() { target.adopt(a.ranges); a.adopted = true }, "%s adopts %d", m.Target, m.ID)
	all.add(progress, a.adopted && m.Stage == Moving, func() {
		w.try(target.member.CompleteMigration(ctx, m.ID, MigrationStats{}))
	}, "%s completes %d", m.Target, m.ID)
}
