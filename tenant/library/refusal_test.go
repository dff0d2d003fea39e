package library

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/internal/whole"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

func TestWhatCannotBeInstalledIsRefusedWithAReasonAndChangesNothing(t *testing.T) {
	l := openLibrary(t, "", func(o *Options) {
		o.Limits = DefaultLimits()
		o.Limits.Modules = 2
		o.Limits.CodeBytes = 2000
		o.Limits.Extension.Module.ModuleBytes = 1500
	})
	s := l.Shelf(nil)
	good := librarytest.Module("fine", "hello")
	install(t, s, "good", good)
	big := func(n int) []byte { return librarytest.Module(strings.Repeat("x", n), "big") }
	for what, c := range map[string]struct {
		p    Package
		says string
	}{
		"no module":          {Package{"a", []byte("hello")}, "refused"},
		"nothing":            {Package{"a", nil}, "refused"},
		"half of a module":   {Package{"a", good[:len(good)/2]}, "refused"},
		"no functions":       {Package{"a", librarytest.Module("x")}, "exports no function"},
		"another's function": {Package{"a", librarytest.Module("x", "hello")}, "module good has functions of these names already: hello"},
		"no name":            {Package{"", good}, "no name"},
		"a name with spaces": {Package{"a b", good}, "no name"},
		"a path":             {Package{"../a", good}, "no name"},
		"a large one":        {Package{"a", big(1600)}, "1500"},
	} {
		_, err := s.Install(t.Context(), c.p, true)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Install(t.Context(), Package{"a", big(1400)}, false); err != nil {
		t.Errorf("one that fits: %v", err)
	}
	if _, err := s.Install(t.Context(), Package{"b", librarytest.Module("y", "third")}, false); err == nil || !strings.Contains(err.Error(), "2 modules") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := s.Install(t.Context(), Package{"good", librarytest.Module(strings.Repeat("z", 900), "hello")}, true); err == nil || !strings.Contains(err.Error(), "2000") {
		t.Errorf("too many bytes: %v", err)
	}
	mustCall(t, s, "hello", "fine")
	if n := len(s.Entries()); n != 2 {
		t.Errorf("%d modules", n)
	}
}

func TestWhatIsDamagedOnDiskIsToldAndNotRun(t *testing.T) {
	dir := t.TempDir()
	first := openLibrary(t, dir, nil)
	e := install(t, first.Shelf(nil), "m", librarytest.Module("one", "f"))
	first.Close()
	path := filepath.Join(dir, e.Sum.String()+codeSuffix)
	must(t, os.WriteFile(path, librarytest.Module("two", "f"), 0o600))
	damaged := openLibrary(t, dir, nil)
	if got, err := call(damaged.Shelf(nil), "f"); !errors.Is(err, errDamaged) {
		t.Errorf("damaged code answers %q, %v", got, err)
	}
	install(t, damaged.Shelf(nil), "m", librarytest.Module("one", "f"))
	mustCall(t, damaged.Shelf(nil), "f", "one")
	damaged.Close()
	must(t, os.WriteFile(filepath.Join(dir, "0"+pageSuffix), []byte(`{"owner": 0, "modu`), 0o600))
	if _, err := OpenFiles(dir); err == nil {
		t.Error("a damaged page is taken for none")
	}
}

func TestHalfWrittenAndUnusedFilesGoAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	stray := filepath.Join(dir, SumOf([]byte("x")).String()+codeSuffix)
	for _, path := range []string{stray, filepath.Join(dir, "0"+pageSuffix+whole.Suffix)} {
		must(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	openLibrary(t, dir, nil)
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		if f.Type().IsRegular() {
			t.Errorf("%s is still there", f.Name())
		}
	}
}

func TestOnAFullDiskAnInstallationFailsWholeAndFunctionsGoOn(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skip("this test mounts a small file system, and may not: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	l := openLibrary(t, dir, nil)
	s := l.Shelf(nil)
	install(t, s, "m", librarytest.Module("one", "f"))
	var failed error
	for i := 0; failed == nil && i < 100; i++ {
		text := fmt.Sprint(i, strings.Repeat("x", 20_000))
		_, failed = s.Install(t.Context(), Package{fmt.Sprint("m", i), librarytest.Module(text, fmt.Sprint("f", i))}, false)
	}
	if !errors.Is(failed, unix.ENOSPC) {
		t.Fatalf("a full disk takes everything: %v", failed)
	}
	mustCall(t, s, "f", "one")
	mustCall(t, s, "f0", fmt.Sprint(0, strings.Repeat("x", 20_000)))
	n := len(s.Entries())
	l.tend(l.tick.Add(10_000)) // They are read from disk again.
	mustCall(t, s, "f", "one")
	l.Close()
	if again := openLibrary(t, dir, nil); len(again.Shelf(nil).Entries()) != n {
		t.Errorf("%d modules before the restart, %d after it", n, len(again.Shelf(nil).Entries()))
	}
}

func TestWhatATenantHasNoRoomForIsRefusedBeforeItIsCompiled(t *testing.T) {
	l := openLibrary(t, "", func(o *Options) {
		o.Limits = DefaultLimits()
		o.Limits.Modules = 2
		o.Limits.CodeBytes = 2000
	})
	s := l.Shelf(nil)
	install(t, s, "m", librarytest.Module("one", "f"))
	none := func(name string, bytes int) Package { return Package{name, make([]byte, bytes)} } // The compiler would refuse it.
	for what, c := range map[string]struct {
		packages []Package
		mode     Mode
		says     string
	}{
		"too many bytes":    {[]Package{none("a", 2000)}, Append, "a tenant can have 2000"},
		"too many modules":  {[]Package{none("a", 1), none("b", 1)}, Append, "2 modules are installed"},
		"one that is there": {[]Package{none("m", 1)}, Append, "already"},
		"a bad name behind": {[]Package{none("a", 1), none("?", 1)}, Append, "no name"},
		"room for it":       {[]Package{none("m", 1)}, Replace, "refused"},
		"room for both":     {[]Package{none("a", 1), none("b", 1)}, Flush, "refused"},
	} {
		if _, err := s.InstallAll(t.Context(), c.packages, c.mode); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	mustCall(t, s, "f", "one")
}

func TestADumpHoldsWhatWasInstalledAndNothingElseIsTakenForOne(t *testing.T) {
	l := openLibrary(t, "", nil)
	s := l.Shelf(nil)
	install(t, s, "a", librarytest.Module("one", "f"))
	install(t, s, "b", librarytest.Module("two", "g"))
	packages, err := s.Packages(t.Context(), s.Entries())
	must(t, err)
	dump := Dump(packages)
	for i := range dump {
		bad := append([]byte(nil), dump...)
		bad[i] ^= 1
		if _, err := s.Undump(bad); err == nil {
			t.Fatalf("with byte %d changed it is taken", i)
		}
		if _, err := s.Undump(dump[:i]); err == nil {
			t.Fatalf("its first %d bytes are taken", i)
		}
	}
	read, err := s.Undump(dump)
	must(t, err)
	other := l.shelf(70000, "anna")
	install(t, other, "c", librarytest.Module("three", "h"))
	if _, err := other.InstallAll(t.Context(), append(read, Package{"d", []byte("no module")}), Flush); err == nil {
		t.Error("a list with something bad in it is installed")
	}
	mustCall(t, other, "h", "three")
	_, err = other.InstallAll(t.Context(), read, Flush)
	must(t, err)
	mustCall(t, other, "f", "one")
	mustCall(t, other, "g", "two")
	if other.Find([]byte("h")) != nil {
		t.Error("what was flushed is there")
	}
}

func TestADumpHasNoMoreModulesThanATenantCanHave(t *testing.T) {
	l := openLibrary(t, "", func(o *Options) { o.Limits.Modules = 2 })
	s := l.Shelf(nil)
	empty := func(n int) []byte { return Dump(make([]Package, n)) }
	read, err := s.Undump(empty(2))
	must(t, err)
	if len(read) != 2 {
		t.Errorf("%d modules are read of 2", len(read))
	}
	if _, err := s.Undump(empty(3)); err == nil || !strings.Contains(err.Error(), "more than the 2 modules") {
		t.Errorf("three modules where there can be two: %v", err)
	}
}

func TestLogsAreBoundedNumberedAndFiltered(t *testing.T) {
	l := openLibrary(t, "", nil)
	s := l.Shelf(nil)
	install(t, s, "m", librarytest.Module("one", "f"))
	f := s.Find([]byte("f"))
	for i := range 4 * logBurst {
		f.Log(i%4, []byte(fmt.Sprint("line ", i, strings.Repeat(".", 100))))
	}
	all, ok := s.Logs("m", 0, Debug, 1<<30)
	if !ok || all.Lost == 0 || len(all.Lines) == 0 || l.logged.Load() > logBytes+2000 {
		t.Fatalf("%d lines, %d lost, %d bytes", len(all.Lines), all.Lost, l.logged.Load())
	}
	last := all.Lines[len(all.Lines)-1]
	if last.Number != all.Last || last.Function != "f" || last.Version != 1 {
		t.Errorf("the last line is %+v of %d", last, all.Last)
	}
	for i, line := range all.Lines[1:] {
		if line.Number != all.Lines[i].Number+1 {
			t.Fatalf("%d follows %d", line.Number, all.Lines[i].Number)
		}
	}
	for _, line := range must2(s.Logs("m", all.Last-50, Warning, 5)).Lines {
		if line.Number <= all.Last-50 || line.Level != "warning" && line.Level != "error" {
			t.Errorf("asked for late and important ones: %+v", line)
		}
	}
	install(t, s, "m", librarytest.Module("two", "f"))
	if kept, _ := s.Logs("m", 0, Debug, 1<<30); len(kept.Lines) != len(all.Lines) {
		t.Error("the log of a module does not outlive a version")
	}
	must(t, s.Delete(t.Context(), "m"))
	if n := l.logged.Load(); n != 0 {
		t.Errorf("logs of nothing hold %d bytes", n)
	}
	if total := l.Totals(); len(total) != 0 {
		t.Errorf("totals %+v", total)
	}
}

func must2(l Lines, ok bool) Lines {
	if !ok {
		panic("there is no such module")
	}
	return l
}

func TestRunsAreShownAndKilled(t *testing.T) {
	l := openLibrary(t, "", nil)
	s, other := l.Shelf(nil), l.shelf(70000, "anna")
	install(t, s, "m", librarytest.Module("one", "f"))
	install(t, other, "m", librarytest.Module("one", "f"))
	if s.Kill() != 0 || s.Oldest() != nil {
		t.Error("something runs")
	}
	mine, theirs := s.Find([]byte("f")).Enter(), other.Find([]byte("f")).Enter()
	if s.Oldest() != mine || s.Kill() != 1 || !errors.Is(mine.Killed(), ErrKilled) || theirs.Killed() != nil {
		t.Error("not the one that runs was killed, or another tenant's")
	}
	mine.Leave()
	if s.Oldest() != nil {
		t.Error("it still runs")
	}
	theirs.Leave()
	var refused *extension.RefusedError
	if _, err := s.Install(t.Context(), Package{"x", []byte("x")}, true); !errors.As(err, &refused) {
		t.Errorf("a refusal is %T", err)
	}
}
