use core::ops::Deref;

/// A number in decimal digits.
pub struct Decimal {
    room: [u8; 20],
    from: usize,
}

/// Writes a number in decimal digits.
pub fn decimal(number: i64) -> Decimal {
    let mut d = decimal_u64(number.unsigned_abs());
    if number < 0 {
        d.front(b'-');
    }
    d
}

/// Writes a number without a sign in decimal digits.
pub fn decimal_u64(number: u64) -> Decimal {
    const STEP: u64 = 1_000_000_000;
    let mut d = Decimal { room: [0; 20], from: 20 };
    let mut n = number;
    // Nine digits at a time have 32 bits, which a division by ten is cheap for.
    while n >= STEP {
        let mut low = (n % STEP) as u32;
        n /= STEP;
        for _ in 0..9 {
            d.front(b'0' + (low % 10) as u8);
            low /= 10;
        }
    }
    let mut high = n as u32;
    loop {
        d.front(b'0' + (high % 10) as u8);
        high /= 10;
        if high == 0 {
            return d;
        }
    }
}

impl Decimal {
    fn front(&mut self, byte: u8) {
        self.from -= 1;
        self.room[self.from] = byte;
    }
}

impl Deref for Decimal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[self.from..]
    }
}

/// Reads a decimal number without a sign.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    // So many digits cannot overflow, and need no checks, which cost a 128-bit product each.
    const SURE: usize = 19;
    let (sure, rest) = text.split_at(text.len().min(SURE));
    let mut n = 0u64;
    for &c in sure {
        n = n * 10 + digit(c)?;
    }
    for &c in rest {
        n = n.checked_mul(10)?.checked_add(digit(c)?)?;
    }
    if text.is_empty() {
        return None;
    }
    Some(n)
}

fn digit(c: u8) -> Option<u64> {
    let digit = c.wrapping_sub(b'0');
    if digit > 9 {
        return None;
    }
    Some(digit.into())
}

/// Reads a decimal number, with a minus if need be.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => match parse_u64(digits)? {
            n if n <= i64::MIN.unsigned_abs() => Some((n as i64).wrapping_neg()),
            _ => None,
        },
        None => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// A little endian number within a slice. Panics if it is not there.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> usize {
    let mut n = [0; 4];
    n.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(n) as usize
}

/// Reads little endian numbers and pieces from the front of a slice.
/// Each returns `None` if there is too little left.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next n bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        if n > self.rest.len() {
            return None;
        }
        let (piece, rest) = self.rest.split_at(n);
        self.rest = rest;
        Some(piece)
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}
