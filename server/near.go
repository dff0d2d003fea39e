package server

// redisNames translates settings that a Redis user will try first.
var redisNames = map[string]string{
	"maxmemory":        "memory-limit",
	"maxmemory-policy": "memory-policy",
	"appendfsync":      "durability",
	"appendonly":       "durability",
	"save":             "checkpoint-every",
	"loglevel":         "log-level",
	"io-threads":       "loops",
	"tls-cert":         "tls-cert-file",
	"tls-key":          "tls-key-file",
	"tls-cacert":       "tls-ca-cert-file",
	"password":         "requirepass",
	"host":             "bind",
	"max-clients":      "maxclients",
}

// Near returns the candidate that name was probably meant to be, or nothing: of the longer one a third may be wrong.
func Near(name string, candidates []string) string {
	best, bestDistance := "", len(name)
	for _, c := range candidates {
		if d := distance(name, c); d < bestDistance && 3*d <= max(len(name), len(c)) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours between two short names.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
