use core::ops::Deref;

use crate::decimal;

/// A short run of bytes that is put together piece by piece, for keys and messages.
///
/// ```ignore
/// let key = Line::<64>::new().with(b"user:").with_number(7);
/// call.get(&key)?;
/// ```
#[derive(Clone, Copy)]
pub struct Line<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Line<N> {
    /// An empty one.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Line<N> {
        Line { bytes: [0; N], len: 0 }
    }

    /// Appends a piece. Panics if it does not fit.
    #[inline]
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes[self.len..self.len + piece.len()].copy_from_slice(piece);
        self.len += piece.len();
    }

    /// Appends a number in decimal digits. Panics if it does not fit.
    pub fn push_number(&mut self, number: i64) {
        self.push(&decimal(number));
    }

    /// Appends as much of a piece as fits.
    pub fn push_what_fits(&mut self, piece: &[u8]) {
        let n = piece.len().min(N - self.len);
        self.push(&piece[..n]);
    }

    /// The line with a piece more. Panics if it does not fit.
    #[inline]
    pub fn with(mut self, piece: &[u8]) -> Line<N> {
        self.push(piece);
        self
    }

    /// The line with a number more, in decimal digits.
    pub fn with_number(self, number: i64) -> Line<N> {
        self.with(&decimal(number))
    }
}

impl<const N: usize> Deref for Line<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
