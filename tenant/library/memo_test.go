package library

import (
	"testing"

	"github.com/ostrodb/ostro/internal/prefetch"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

func TestAMemoAnswersAsTheShelfDoesWhateverIsInstalledOrDeleted(t *testing.T) {
	s := openLibrary(t, "", nil).Shelf(nil)
	names := []string{"a", "b", "c", "d", "e", "a_name_that_is_longer_than_what_is_remembered", "none"}
	var m Memo
	same := func() {
		t.Helper()
		for range 2 {
			for _, name := range names {
				if got, want := s.FindBy(&m, []byte(name)), s.Find([]byte(name)); got != want {
					t.Fatalf("%s: %p, want %p", name, got, want)
				}
			}
		}
	}
	same()
	install(t, s, "first", librarytest.Module("one", names[:6]...))
	same()
	mustCall(t, s, "a", "one")
	s.Lines(&m, 0, new(prefetch.List)) // Of functions that were called, and of those that were not.
	install(t, s, "first", librarytest.Module("two", names[:4]...))
	same()
	if err := s.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	same()
}
