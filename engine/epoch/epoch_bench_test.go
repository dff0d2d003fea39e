package epoch

import "testing"

func BenchmarkEnterLeave(b *testing.B) {
	table := New(64)
	b.Run("alone", func(b *testing.B) {
		g := register(b, table)
		defer g.Unregister()
		for b.Loop() {
			g.Enter()
			g.Leave()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			g := register(b, table)
			defer g.Unregister()
			for pb.Next() {
				g.Enter()
				g.Leave()
			}
		})
	})
	b.Run("behind a slow guard", func(b *testing.B) {
		slow, g := register(b, table), register(b, table)
		slow.Enter()
		table.Defer(func() {})
		for b.Loop() {
			g.Enter()
			g.Leave()
		}
		slow.Unregister()
		g.Unregister()
	})
}

func BenchmarkRefresh(b *testing.B) {
	g := register(b, New(64))
	g.Enter()
	for b.Loop() {
		g.Refresh()
	}
	g.Unregister()
}
