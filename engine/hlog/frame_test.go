package hlog

import "testing"

func TestFramesThatWereMadeReadyAreTakenFirstAndTheRestIsGivenBack(t *testing.T) {
	p := &framePool{bytes: 64 << 10}
	defer p.close()
	always := func() bool { return true }
	end := p.promise()
	if err := p.prepare(10, always); err != nil {
		t.Fatal(err)
	}
	if len(p.free) != 10 || len(p.all) != 10 {
		t.Fatalf("%d of %d frames are free, want 10", len(p.free), len(p.all))
	}
	var taken []*frame
	for range 3 {
		f, err := p.get()
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	if len(p.all) != 10 {
		t.Errorf("%d frames: one was made though some were ready", len(p.all))
	}
	end()
	if len(p.free) != p.kept() || len(p.all) != len(p.free)+len(taken) {
		t.Errorf("%d free frames of %d after a trim, want %d", len(p.free), len(p.all), p.kept())
	}
	if err := p.prepare(1000, func() bool { return false }); err != nil || len(p.all) > 10 {
		t.Errorf("%d frames, %v: it was told to stop", len(p.all), err)
	}
}

func TestFramesThatAreReadyForOneStayWhenAnotherHasEnded(t *testing.T) {
	p := &framePool{bytes: 64 << 10}
	defer p.close()
	first, second := p.promise(), p.promise()
	if err := p.prepare(10, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	first()
	first() // It counts once.
	if len(p.free) != 10 {
		t.Errorf("%d frames are ready for the other one, want 10", len(p.free))
	}
	second()
	if len(p.free) != p.kept() {
		t.Errorf("%d frames are free when nobody needs them, want %d", len(p.free), p.kept())
	}
}
