package meter

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
)

// written is what this version makes of testdata/work.wasm.
const written = "5 0f89999797c7d5f5"

func TestTheVersionGrowsWithWhatIsWritten(t *testing.T) {
	code, err := os.ReadFile("testdata/work.wasm")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Rewrite(code, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(res.Module)
	if got := fmt.Sprintf("%d %x", Version, sum[:8]); got != written {
		t.Fatalf("the rewriter writes %s, and the test knows %s: if it writes something else now, count up Version, and put both here", got, written)
	}
}
