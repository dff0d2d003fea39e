package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// redisBenchmark drives a server with the tool of that name, so that anyone
// can repeat a figure without this program.
type redisBenchmark struct{ f respFlags }

func (d *redisBenchmark) keys() workload.Encoding { return workload.Text16 }

func (d *redisBenchmark) round(ctx context.Context, t *target, c respCase) (respRound, error) {
	host, port, err := net.SplitHostPort(t.Addr)
	if err != nil {
		return respRound{}, err
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-t", strings.ToLower(c.Workload),
		"-c", strconv.Itoa(d.f.clients), "-d", strconv.Itoa(d.f.value), "-r", strconv.Itoa(int(d.f.records)),
		"-P", strconv.Itoa(c.Pipeline), "-n", strconv.Itoa(requestsFor(c.Pipeline, d.f.duration)))
	if d.f.clientThreads > 1 {
		cmd.Args = append(cmd.Args, "--threads", strconv.Itoa(d.f.clientThreads))
	}
	server, err := t.cpu()
	if err != nil {
		return respRound{}, err
	}
	out, err := cmd.Output()
	if err != nil {
		return respRound{}, fmt.Errorf("redis-benchmark: %w: %s", err, lastLine(out))
	}
	after, err := t.cpu()
	if err != nil {
		return respRound{}, err
	}
	r, err := parseRedisBenchmark(out)
	if err != nil {
		return respRound{}, err
	}
	r.ServerCPU = float64(after-server) / float64(requestsFor(c.Pipeline, d.f.duration))
	busy := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.ClientBusy = busy.Seconds() * r.OpsPerSecond / float64(requestsFor(c.Pipeline, d.f.duration))
	return r, nil
}

// requestsFor is how many requests last about d on a server that is as fast as
// most here: the tool counts requests, not seconds.
func requestsFor(pipeline int, d time.Duration) int {
	return max(1000, int(80_000*math.Sqrt(float64(pipeline))*d.Seconds()))
}

var (
	throughputLine = regexp.MustCompile(`throughput summary: ([0-9.]+) requests per second`)
	percentileLine = regexp.MustCompile(`^([0-9.]+)% <= ([0-9.]+) milliseconds`)
)

// parseRedisBenchmark reads the tool's long output for one test. The tool's
// summary ends at p99; p99.9 is in the distribution before it.
func parseRedisBenchmark(out []byte) (respRound, error) {
	var r respRound
	inDistribution, inSummary := false, false
	lines := bufio.NewScanner(bytes.NewReader(bytes.ReplaceAll(out, []byte("\r"), []byte("\n"))))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		fields := strings.Fields(line)
		if m := throughputLine.FindStringSubmatch(line); m != nil {
			r.OpsPerSecond, _ = strconv.ParseFloat(m[1], 64)
		}
		if inSummary && len(fields) == 6 {
			r.Latency.P50, r.Latency.P99, r.Latency.Max = millis(fields[2]), millis(fields[4]), millis(fields[5])
		}
		inSummary = strings.Join(fields, " ") == "avg min p50 p95 p99 max"
		inDistribution = strings.HasPrefix(line, "Latency by percentile") || inDistribution && line != ""
		if m := percentileLine.FindStringSubmatch(line); m != nil && inDistribution && r.Latency.P999 == 0 {
			if percent, _ := strconv.ParseFloat(m[1], 64); percent >= 99.9 {
				r.Latency.P999 = millis(m[2])
			}
		}
	}
	if r.OpsPerSecond == 0 || r.Latency.P50 == 0 {
		return r, fmt.Errorf("redis-benchmark said no figures: %s", lastLine(out))
	}
	return r, nil
}

func millis(text string) time.Duration {
	v, _ := strconv.ParseFloat(text, 64) // not a number is zero, which the caller notices
	return time.Duration(math.Round(v*1e3)) * time.Microsecond
}

func lastLine(out []byte) string {
	lines := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return "nothing"
	}
	return lines[len(lines)-1]
}
