//go:build !amd64

package record

// crc16 returns CRC-16/XMODEM of b.
func crc16(b []byte) uint16 { return crc16Tabled(b) }
