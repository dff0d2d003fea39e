package server

import (
	"runtime"
	"runtime/debug"
)

// version is the release that this tree is or leads up to.
const version = "0.1.0"

// Build tells which program this is.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // of the source, where the build recorded it
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// BuildInfo reads what the Go toolchain recorded in the binary.
func BuildInfo() Build {
	b := Build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b Build) String() string {
	s := "Ostro " + b.Version
	if len(b.Commit) >= 12 {
		s += " (" + b.Commit[:12]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s + " " + b.Go + " " + b.Platform
}
