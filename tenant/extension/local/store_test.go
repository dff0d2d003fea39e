package local

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
)

func TestWhatIsSavedIsLoadedAgain(t *testing.T) {
	at := time.Unix(1000, 0)
	clock := func() time.Time { return at }
	s := New(clock)
	text := `{"key":"a","value":"1"}
{"key":"b","value":"two","ttl_ms":5000}
{"key_b64":"/w==","value_b64":"/v8="}
{"table":3,"key":"a","value":""}
`
	if err := s.Load(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Save(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != text {
		t.Fatalf("%s\nwant\n%s", out.String(), text)
	}
	at = at.Add(5 * time.Second)
	if st := s.Get(0, []byte("b"), nil, new(extension.Value)); st != extension.Absent || s.Len() != 3 {
		t.Errorf("a key that has expired: %d, %d keys", st, s.Len())
	}
}

func TestACommitFailsIfWhatWasReadHasChanged(t *testing.T) {
	s := New(nil)
	put := func(key, value string, reads ...extension.Read) error {
		return s.Commit(&extension.Changes{Reads: reads, Writes: []extension.Write{{Key: []byte(key), Value: []byte(value)}}})
	}
	if err := put("a", "1", extension.Read{Key: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if err := put("a", "2", extension.Read{Key: []byte("a")}); err != ErrConflict {
		t.Fatalf("a key that was absent, and is there: %v", err)
	}
	var v extension.Value
	s.Get(0, []byte("a"), make([]byte, 8), &v)
	if err := put("b", "2", extension.Read{Key: []byte("a"), Version: v.Version}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(&extension.Changes{Writes: []extension.Write{{Key: []byte("a"), Delete: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := put("b", "3", extension.Read{Key: []byte("a"), Version: v.Version}); err != ErrConflict {
		t.Fatalf("a key that was removed: %v", err)
	}
}
