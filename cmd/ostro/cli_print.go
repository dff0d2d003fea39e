package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ostrodb/ostro/wire/resp"
)

// format is how replies are printed.
type format uint8

const (
	formatTyped format = iota // as redis-cli on a terminal: (integer) 1
	formatRaw                 // bare text, one element a line
	formatJSON
)

// printer writes replies to a person or a script.
type printer struct {
	out    io.Writer
	format format
}

// Print writes one reply and ends the line.
func (p *printer) Print(v *resp.Value) {
	switch p.format {
	case formatJSON:
		text, _ := json.Marshal(jsonOf(v)) // Only values that always marshal come from jsonOf.
		fmt.Fprintf(p.out, "%s\n", text)
	case formatRaw:
		fmt.Fprintln(p.out, rawText(v))
	default:
		fmt.Fprint(p.out, typedText(v, ""))
	}
}

// rawText is a reply without any decoration.
func rawText(v *resp.Value) string {
	switch v.Kind {
	case resp.Array, resp.Set, resp.Push, resp.Map:
		lines := make([]string, len(v.Elems))
		for i := range v.Elems {
			lines[i] = rawText(&v.Elems[i])
		}
		return strings.Join(lines, "\n")
	case resp.Null:
		return ""
	}
	return v.Text()
}

// typedText is a reply as redis-cli shows it, every line ended. prefix stands
// before all lines but the first.
func typedText(v *resp.Value, prefix string) string {
	switch v.Kind {
	case resp.Array, resp.Set, resp.Push, resp.Map:
		return typedElements(v, prefix)
	case resp.SimpleError, resp.BulkError:
		return "(error) " + string(v.Str) + "\n"
	case resp.Integer:
		return "(integer) " + v.Text() + "\n"
	case resp.Double:
		return "(double) " + v.Text() + "\n"
	case resp.BigNumber:
		return "(big number) " + v.Text() + "\n"
	case resp.Boolean:
		return "(" + v.Text() + ")\n"
	case resp.Null:
		return "(nil)\n"
	case resp.BulkString:
		return quote(v.Str) + "\n"
	}
	text := string(v.Str) // simple and verbatim strings
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// aggregates are the names and the marks behind the number of each element.
var aggregates = map[resp.Kind]struct{ name, mark string }{
	resp.Array: {"array", ")"},
	resp.Set:   {"set", "~"},
	resp.Push:  {"push", ">"},
	resp.Map:   {"hash", "#"},
}

func typedElements(v *resp.Value, prefix string) string {
	kind := aggregates[v.Kind]
	if len(v.Elems) == 0 {
		return "(empty " + kind.name + ")\n"
	}
	step := 1
	if v.Kind == resp.Map {
		step = 2
	}
	digits := len(strconv.Itoa(len(v.Elems) / step))
	inner := prefix + strings.Repeat(" ", digits+2)
	var b strings.Builder
	for i := 0; i < len(v.Elems); i += step {
		if i > 0 {
			b.WriteString(prefix)
		}
		fmt.Fprintf(&b, "%*d%s ", digits, i/step+1, kind.mark)
		if step == 2 {
			b.WriteString(strings.TrimSuffix(typedText(&v.Elems[i], inner), "\n") + " => ")
		}
		b.WriteString(typedText(&v.Elems[i+step-1], inner))
	}
	return b.String()
}

// quote writes bytes so that SplitWords reads them back.
func quote(s []byte) string {
	b := []byte{'"'}
	for _, c := range s {
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\a':
			b = append(b, `\a`...)
		case '\b':
			b = append(b, `\b`...)
		default:
			if c < ' ' || c > '~' {
				b = fmt.Appendf(b, `\x%02x`, c)
			} else {
				b = append(b, c)
			}
		}
	}
	return string(append(b, '"'))
}

// jsonOf turns a reply into what encoding/json writes. Errors become
// {"error": text}, bytes that are not UTF-8 {"base64": text}.
func jsonOf(v *resp.Value) any {
	switch v.Kind {
	case resp.Array, resp.Set, resp.Push:
		list := make([]any, len(v.Elems))
		for i := range v.Elems {
			list[i] = jsonOf(&v.Elems[i])
		}
		return list
	case resp.Map:
		object := make(map[string]any, len(v.Elems)/2)
		for i := 0; i+1 < len(v.Elems); i += 2 {
			object[v.Elems[i].Text()] = jsonOf(&v.Elems[i+1])
		}
		return object
	case resp.SimpleError, resp.BulkError:
		return map[string]any{"error": string(v.Str)}
	case resp.Null:
		return nil
	case resp.Integer:
		return v.Int
	case resp.BigNumber:
		return json.Number(v.Str)
	case resp.Boolean:
		return v.Int != 0
	case resp.Double:
		if math.IsInf(v.Float, 0) || math.IsNaN(v.Float) {
			return v.Text() // JSON has no number for it.
		}
		return v.Float
	}
	if !utf8.Valid(v.Str) {
		return map[string]any{"base64": base64.StdEncoding.EncodeToString(v.Str)}
	}
	return string(v.Str)
}
