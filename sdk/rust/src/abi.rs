//! The interface itself, as docs/function-abi.md has it.

#[link(wasm_import_module = "ostro")]
extern "C" {
    pub fn args(buf: *mut u8, cap: usize) -> usize;
    pub fn get(table: u32, key: *const u8, key_len: usize, buf: *mut u8, cap: usize) -> i64;
    pub fn read(view: u32, offset: usize, buf: *mut u8, len: usize) -> i32;
    pub fn multiget(table: u32, keys: *const Span, n: usize, results: *mut Found, buf: *mut u8, cap: usize) -> i32;
    pub fn alloc(table: u32, key: *const u8, key_len: usize, len: usize) -> i32;
    pub fn fill(buffer: i32, offset: usize, ptr: *const u8, len: usize) -> i32;
    pub fn put(buffer: i32, ttl_millis: i64) -> i32;
    pub fn set(table: u32, key: *const u8, key_len: usize, ptr: *const u8, len: usize, ttl_millis: i64) -> i32;
    pub fn del(table: u32, key: *const u8, key_len: usize) -> i32;
    pub fn scan(table: u32, cursor: *mut u64, prefix: *const u8, prefix_len: usize, buf: *mut u8, cap: usize, flags: u32) -> i32;
    pub fn resp(ptr: *const u8, len: usize) -> i32;
    #[link_name = "yield"]
    pub fn yield_now();
    pub fn log(level: u32, ptr: *const u8, len: usize);
    pub fn now() -> i64;
    pub fn random(ptr: *mut u8, len: usize);
    pub fn fail(code: i32, ptr: *const u8, len: usize) -> !;
}

/// A key of `multiget`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    pub ptr: *const u8,
    pub len: usize,
}

/// A result of `multiget`: a length or a negative status; a view if it did not fit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Found {
    pub ptr: *const u8,
    pub len: i32,
    pub view: u32,
    pub zero: u32,
}
