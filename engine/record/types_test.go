package record

import "testing"

func TestKindsHaveTheNamesOfRedis(t *testing.T) {
	for kind, want := range map[Kind]string{
		KindString: "string", KindList: "list", KindSet: "set", KindZSet: "zset", KindHash: "hash", KindStream: "stream", 9: "kind 9",
	} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is %q, want %q", uint8(kind), got, want)
		}
	}
}

func TestTypesHaveNames(t *testing.T) {
	for typ, want := range map[Type]string{TypeNone: "none", TypePut: "put", TypeCompletion: "completion", 12: "type 12"} {
		if got := typ.String(); got != want {
			t.Errorf("type %d is %q, want %q", uint8(typ), got, want)
		}
	}
}

func TestAddressHoldsSlotAndOffsetIn48Bits(t *testing.T) {
	for _, c := range []struct {
		slot, off uint32
		text      string
	}{
		{0, 0, "0:0"},
		{1, 0, "1:0"},
		{1, 64, "1:64"},
		{MaxSlots - 1, MaxSegmentBytes - 8, "33554431:8388600"},
	} {
		a := MakeAddress(c.slot, c.off)
		if a.Slot() != c.slot || a.Offset() != c.off || a.String() != c.text || a >= 1<<48 || a%8 != 0 {
			t.Errorf("address of %d:%d is %#x, reads %s", c.slot, c.off, uint64(a), a)
		}
	}
}
