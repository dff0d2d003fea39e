use core::cmp::Ordering;

const WORD: usize = 8;

/// Compares bytes as `a.cmp(b)` does, a word at a time: keys often begin alike, and
/// `cmp` looks at each byte of what they share.
#[inline]
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let shared = a.len().min(b.len());
    if shared < WORD {
        return a.cmp(b);
    }
    let last = shared - WORD;
    let mut at = 0;
    while at < last {
        let (x, y) = (word(a, at), word(b, at));
        if x != y {
            return first_byte(x, y);
        }
        at += WORD;
    }
    // The last word begins wherever it has to: what it shares with the one before is alike.
    first_byte(word(a, last), word(b, last)).then(a.len().cmp(&b.len()))
}

/// Eight bytes, the first of them lowest.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut room = [0; WORD];
    room.copy_from_slice(&bytes[at..at + WORD]);
    u64::from_le_bytes(room)
}

/// Compares the first bytes that differ.
#[inline]
fn first_byte(x: u64, y: u64) -> Ordering {
    let at = (x ^ y).trailing_zeros() & 0x38;
    ((x >> at) as u8).cmp(&((y >> at) as u8))
}
