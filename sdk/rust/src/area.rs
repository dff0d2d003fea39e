//! The area: the host puts arguments there before a call, and takes the response
//! from there when the function has returned. What does not fit takes a call.

use crate::abi;

const ARGS: usize = 2048;
const RESP: usize = 2048;

#[repr(C, align(8))]
struct Area {
    args: *mut u8,
    args_cap: usize,
    args_len: usize,
    resp: *mut u8,
    resp_cap: usize,
    resp_len: usize,
}

static mut ARGS_ROOM: [u8; ARGS] = [0; ARGS];
static mut RESP_ROOM: [u8; RESP] = [0; RESP];
static mut AREA: Area = Area {
    args: unsafe { &ARGS_ROOM as *const [u8; ARGS] as *mut u8 },
    args_cap: ARGS,
    args_len: 0,
    resp: unsafe { &RESP_ROOM as *const [u8; RESP] as *mut u8 },
    resp_cap: RESP,
    resp_len: 0,
};

#[export_name = "ostro_area"]
extern "C" fn area() -> usize {
    unsafe { &AREA as *const Area as usize }
}

/// The block of args, if the host has put it here.
///
/// # Safety
/// Nothing of the call before may be in use: its arguments were here.
pub(crate) unsafe fn args() -> Option<&'static [u8]> {
    let len = AREA.args_len;
    if len == 0 || len > ARGS {
        return None;
    }
    Some(core::slice::from_raw_parts(AREA.args, len))
}

/// Appends to the response.
pub(crate) fn resp(piece: &[u8]) {
    unsafe {
        let at = AREA.resp_len;
        if piece.len() > RESP - at {
            return call(piece);
        }
        core::ptr::copy_nonoverlapping(piece.as_ptr(), AREA.resp.add(at), piece.len());
        AREA.resp_len = at + piece.len();
    }
}

// What is too large for the area follows what was left there.
#[cold]
unsafe fn call(piece: &[u8]) {
    if AREA.resp_len > 0 {
        abi::resp(AREA.resp, AREA.resp_len);
    }
    AREA.resp_len = 0;
    abi::resp(piece.as_ptr(), piece.len());
}
