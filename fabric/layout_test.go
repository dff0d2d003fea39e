package fabric_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ostrodb/ostro/fabric"
)

func full() fabric.WR {
	return fabric.WR{
		ID: 0x0101020304050607, Remote: fabric.Target{Key: 0x1112131415161718, Addr: 0x2122232425262728},
		A: 0x3132333435363738, B: 0x4142434445464748,
		Local: [4]fabric.Piece{
			{Addr: 0x51, Bytes: 0x52, Key: 0x53},
			{Addr: 0x61, Bytes: 0x62, Key: 0x63},
			{Addr: 0x71, Bytes: 0x72, Key: 0x73},
			{Addr: 0x81, Bytes: 0x82, Key: 0x83},
		},
		Imm: 0x91929394, CQ: 0xa1a2a3a4, Pieces: 4, Flags: fabric.Signaled | fabric.Fenced, Op: fabric.OpCAS, Unowned: true, Returns: true,
	}
}

const golden = "0706050403020101" + "1817161514131211" +
	"6100000000000000" + "62000000" + "63000000" +
	"7100000000000000" + "72000000" + "73000000" +
	"8100000000000000" + "82000000" + "83000000" +
	"53000000" + "a4a3a2a1" + "0100000000000000" +
	"3837363534333231" + "4847464544434241" +
	"5100000000000000" + "52000000" + "94939291" +
	"2827262524232221" + "00000000" + "04030500"

func TestARequestHasItsGoldenBytes(t *testing.T) {
	w := full()
	var slot [fabric.SlotBytes]byte
	w.Encode(&slot)
	if got := hex.EncodeToString(slot[:]); got != golden {
		t.Fatalf("got  %s\nwant %s", got, golden)
	}
	var back fabric.WR
	back.Decode(&slot)
	if diff := cmp.Diff(w, back); diff != "" {
		t.Fatal(diff)
	}
}

func TestAPatchOverAnUnownedSlotIsTheRequestHandedOver(t *testing.T) {
	posted := fabric.Write(fabric.Target{Key: 7}, fabric.Piece{Key: 8}).Defer()
	var slot [fabric.SlotBytes]byte
	posted.Encode(&slot)

	filled := fabric.CAS(fabric.Target{Addr: 64}, 1, 2, fabric.Piece{Addr: 8, Bytes: 8}).Signal(0)
	patch := filled.Patch()
	copy(slot[fabric.PatchOffset:], patch[:])

	var got fabric.WR
	got.Decode(&slot)
	want := filled
	want.Remote.Key, want.Local[0].Key, want.Returns = 7, 8, true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestTheOwnerByteIsTheLastOfSlotAndPatch(t *testing.T) {
	w := full()
	patch := w.Patch()
	if patch[len(patch)-1] != fabric.OwnedByNIC || fabric.OwnerOffset != fabric.SlotBytes-1 {
		t.Fatal("a remote write that was cut could hand over half a request")
	}
}

func TestACompletionHasItsGoldenBytes(t *testing.T) {
	c := fabric.Completion{ID: 1, QP: 2, Bytes: 3, Imm: 4, Status: fabric.NotReady, Op: fabric.OpSend, HasImm: true}
	var b [fabric.CompletionBytes]byte
	c.Encode(&b)
	want := []byte{0: 1, 8: 2, 12: 3, 16: 4, 20: 7, 21: 8, 22: 1, 31: 0}
	if !bytes.Equal(b[:], want) {
		t.Fatalf("got %x", b)
	}
	var back fabric.Completion
	if back.Decode(&b); back != c {
		t.Fatalf("got %+v", back)
	}
}

func TestAnEndpointSurvivesItsText(t *testing.T) {
	e := fabric.Endpoint{NIC: fabric.NICID{1, 2, 255}, QP: 9, Token: 1 << 63, Peer: "node-3/a", Addr: "[::1]:7400"}
	back, err := fabric.ParseEndpoint(e.String())
	if err != nil || back != e {
		t.Fatalf("got %+v, %v", back, err)
	}
	for _, bad := range []string{"", "x", "@/", e.String()[1:], "00.1.2@/", e.NIC.String() + ".x.0000000000000000@/"} {
		if _, err := fabric.ParseEndpoint(bad); err == nil {
			t.Errorf("%q was taken for an endpoint", bad)
		}
	}
}

func FuzzDecodeEncodeIsTheIdentityOnWhatIsMeant(f *testing.F) {
	w := full()
	var slot [fabric.SlotBytes]byte
	w.Encode(&slot)
	f.Add(slot[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != fabric.SlotBytes {
			return
		}
		var one, two fabric.WR
		one.Decode((*[fabric.SlotBytes]byte)(b))
		var slot [fabric.SlotBytes]byte
		one.Encode(&slot)
		if !one.Unowned {
			slot[fabric.OwnerOffset] = fabric.OwnedByNIC
		}
		if two.Decode(&slot); one != two {
			t.Fatalf("%+v became %+v", one, two)
		}
	})
}
