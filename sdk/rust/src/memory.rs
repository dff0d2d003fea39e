//! The memory of a call: a bump pointer that every call begins anew.
//!
//! It takes whole pages that nobody else has, so it gets along with whatever
//! allocator the module has. If another took pages in between, the arena moves to
//! a larger piece and leaves the old one, whose bytes the call may still look at.

use core::arch::wasm32::memory_grow;
use core::mem::{align_of, size_of};

const PAGE: usize = 65536;

struct Arena {
    base: usize,
    next: usize,
    end: usize,
}

// A module has one thread, and nothing below calls back into itself. It has nothing
// at first, at a place other than null, for slices of no length begin there, too.
static mut ARENA: Arena = Arena { base: 8, next: 8, end: 8 };

/// Frees all memory of the calls before.
///
/// # Safety
/// No reference to it may be alive.
pub unsafe fn reset() {
    ARENA.next = ARENA.base;
}

/// What is free without growing: its place and length. Good until the next `take`.
pub fn free() -> (*mut u8, usize) {
    unsafe { (ARENA.next as *mut u8, ARENA.end - ARENA.next) }
}

/// Takes len bytes, 8-aligned, with any content.
pub fn take(len: usize) -> *mut u8 {
    unsafe {
        let whole = len.saturating_add(7) & !7;
        if whole > ARENA.end - ARENA.next {
            grow(whole);
        }
        let at = ARENA.next;
        ARENA.next += whole;
        at as *mut u8
    }
}

/// Takes room for n values of a type and fills it with one.
pub fn slice<'a, T: Copy>(n: usize, value: T) -> &'a mut [T] {
    assert!(align_of::<T>() <= 8);
    let len = n.checked_mul(size_of::<T>()).unwrap_or(usize::MAX);
    let at = take(len) as *mut T;
    unsafe {
        for i in 0..n {
            at.add(i).write(value);
        }
        core::slice::from_raw_parts_mut(at, n)
    }
}

/// Makes the first len bytes of what was `free` taken, and a slice.
pub fn keep<'a>(len: usize) -> &'a [u8] {
    unsafe { core::slice::from_raw_parts(take(len), len) }
}

#[cold]
#[inline(never)]
unsafe fn grow(whole: usize) {
    let lacking = whole - (ARENA.end - ARENA.next);
    let mut pages = (lacking - 1) / PAGE + 1;
    let mut at = memory_grow(0, pages);
    if at != usize::MAX && at * PAGE != ARENA.end {
        ARENA.base = at * PAGE;
        ARENA.next = ARENA.base;
        ARENA.end = ARENA.base + pages * PAGE;
        if whole <= ARENA.end - ARENA.next {
            return;
        }
        pages = (whole - (ARENA.end - ARENA.next) - 1) / PAGE + 1;
        at = memory_grow(0, pages);
    }
    if at == usize::MAX || at * PAGE != ARENA.end {
        let why = b"the function needs more memory than it may have";
        crate::abi::fail(240, why.as_ptr(), why.len());
    }
    ARENA.end += pages * PAGE;
}
