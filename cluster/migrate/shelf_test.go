package migrate

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// A store is closed when its shelf is, and who looks at it then looks at memory that is gone.
func TestAShelfIsNotClosedWhileItIsSurveyed(t *testing.T) {
	shelf, closed := NewShelf(filled(t, 100)), make(chan struct{})
	began := false
	err := shelf.Survey(1000, func(record.Place, int64) {
		if !began {
			began = true
			go func() { shelf.Close(); close(closed) }()
		}
		select {
		case <-closed:
			t.Error("it was closed")
		default:
		}
	})
	if err != nil || !began {
		t.Fatal(began, err)
	}
	<-closed
	if err := shelf.Survey(1, func(record.Place, int64) { t.Error("a closed one tells of records") }); !errors.Is(err, errShelfClosed) {
		t.Errorf("a closed shelf says %v", err)
	}
}
