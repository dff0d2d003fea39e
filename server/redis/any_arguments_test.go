package redis

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/wire/resp"
)

// oddWords are arguments that options and numbers are made of, right and wrong.
var oddWords = strings.Fields("0 1 -1 2 16 100 9223372036854775807 -9223372036854775808 x k1 k2 k3 * ? [a- \\ nx xx gt lt get set incrby overflow fail sat " +
	"u8 i64 u64 #1 ex px exat pxat keepttl persist db replace match count type string id addr skipme yes no on off skip list help usage samples " +
	"encoding maxmemory timeout requirepass idx len minmatchlen withmatchlen and or xor not bit byte async sync filterby pattern auth setname default all 3")

// TestEveryCommandAnswersOnceToAnyArguments runs every command with arguments that
// make little sense: it must answer with exactly one whole reply.
func TestEveryCommandAnswersOnceToAnyArguments(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		for _, cmd := range commandList {
			switch cmd.name {
			case "save", "bgsave", "shutdown": // act on the server as a whole
				continue
			}
			args := drawArguments(r, cmd)
			if !cmd.acceptsArgs(len(args)) || cmd.subs != nil && cmd.misnamed(args) != "" {
				continue
			}
			b.c.conn.reply = replyOn
			if b.run(args) == later { // No loop is there to run it again.
				b.c.conn.resume = resumption{}
				continue
			}
			if silent := cmd.name == "client" && b.c.conn.reply != replyOn; silent {
				continue
			}
			in := resp.NewReplyReader(bytes.NewReader(b.c.out.Bytes()))
			if _, err := in.Read(); err != nil {
				t.Fatalf("%q answers %q: %v", args, b.c.out.Bytes(), err)
			}
			if _, err := in.Read(); err == nil {
				t.Fatalf("%q answers twice: %q", args, b.c.out.Bytes())
			}
		}
	}
}

func drawArguments(r *rand.Rand, cmd *command) [][]byte {
	args := [][]byte{[]byte(cmd.name)}
	if len(cmd.subs) > 0 {
		sub := cmd.subs[r.IntN(len(cmd.subs))]
		args = append(args, []byte(sub.name[len(cmd.name)+1:]))
	}
	for n := max(cmd.arity, -cmd.arity) - len(args) + r.IntN(5); n > 0; n-- {
		args = append(args, []byte(oddWords[r.IntN(len(oddWords))]))
	}
	return args
}
