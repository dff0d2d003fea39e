/// Why a call of the store, or the whole function, failed.
///
/// A function that returns one ends with its code and message, and nothing that
/// it wrote is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Another node has this key: use one hash tag, as in `{user7}:friends`.
    Elsewhere,
    /// The key or the value is too large.
    TooLarge,
    /// The function was invoked for reading only.
    ReadOnly,
    /// There is no such table, or it is not the tenant's.
    NoTable,
    /// The store has no room for this write.
    Full,
    /// A key or an argument of the invocation is missing or wrong.
    Argument(&'static str),
    /// Your own: a code outside of 0 and 240 to 255, and a sentence.
    Own(i32, &'static str),
}

/// What most functions of this crate return.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// The number that the caller gets.
    pub fn code(self) -> i32 {
        match self {
            Error::Argument(_) => 241,
            Error::Own(code, _) => code,
            _ => 242,
        }
    }

    /// The sentence that the caller gets.
    pub fn message(self) -> &'static str {
        match self {
            Error::Elsewhere => "another node has this key: use one hash tag for all keys of a call",
            Error::TooLarge => "a key or value is too large",
            Error::ReadOnly => "invoked for reading only",
            Error::NoTable => "no such table",
            Error::Full => "the store is full",
            Error::Argument(what) | Error::Own(_, what) => what,
        }
    }

    /// Of a negative status other than ABSENT.
    pub(crate) fn of(status: i32) -> Error {
        match status {
            -2 => Error::Elsewhere,
            -3 => Error::TooLarge,
            -4 => Error::ReadOnly,
            -5 => Error::NoTable,
            _ => Error::Full,
        }
    }
}

/// The status of a key that is not there.
pub(crate) const ABSENT: i32 = -1;

pub(crate) fn check(status: i32) -> Result<()> {
    if status < 0 {
        return Err(Error::of(status));
    }
    Ok(())
}
