package admin

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed status.html
var statusText string

var statusPage = template.Must(template.New("status").Parse(statusText))

// status is a page for eyes; scripts read /metrics.
func status(w http.ResponseWriter, version string, node Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	health := "ok"
	if err := node.Health(); err != nil {
		health = err.Error()
	}
	_ = statusPage.Execute(w, map[string]any{ // The reader is gone: nobody to tell.
		"Version": version,
		"Phase":   node.Phase().String(),
		"Health":  health,
		"Facts":   node.Facts(),
	})
}
