package record

import "encoding/binary"

// crc16Tables[i][b] is the CRC of byte b followed by i zero bytes. With eight
// of them, eight bytes cost eight loads. They are wider than they need be
// because narrow loads and sums cost more.
var crc16Tables = makeCRC16Tables()

func makeCRC16Tables() (t [8][256]uint32) {
	const polynomial = 0x1021 // XMODEM, as Redis Cluster has it
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*polynomial
		}
		t[0][b] = uint32(crc)
	}
	for i := 1; i < len(t); i++ {
		for b := range 256 {
			before := t[i-1][b]
			t[i][b] = before<<8&0xffff ^ t[0][before>>8]
		}
	}
	return t
}

// crc16Tabled is crc16 in plain Go.
//
// Zero bytes in front do not change a CRC that starts at zero, so the odd bytes
// come first, as one word with zeroes before them: no byte is taken alone.
func crc16Tabled(b []byte) uint16 {
	crc := uint32(0)
	if odd := len(b) % 8; odd != 0 {
		crc = crc16Word(0, headWord(b, odd))
		b = b[odd:]
	}
	for len(b) >= 8 {
		crc = crc16Word(crc, binary.BigEndian.Uint64(b))
		b = b[8:]
	}
	return uint16(crc)
}

// headWord returns the first n bytes of b, 0 < n < 8, as the low end of a word.
func headWord(b []byte, n int) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b) >> (64 - 8*n)
	}
	word := uint64(0)
	for _, c := range b[:n] {
		word = word<<8 | uint64(c)
	}
	return word
}

// crc16Word carries crc over the eight bytes of word, highest first. Only two of
// the loads wait for the crc before.
func crc16Word(crc uint32, word uint64) uint32 {
	t := &crc16Tables
	high := uint32(word>>48) ^ crc
	return t[7][byte(high>>8)] ^ t[6][byte(high)] ^ t[5][byte(word>>40)] ^ t[4][byte(word>>32)] ^
		t[3][byte(word>>24)] ^ t[2][byte(word>>16)] ^ t[1][byte(word>>8)] ^ t[0][byte(word)]
}
