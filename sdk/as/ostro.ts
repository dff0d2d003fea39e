// Functions that run inside Ostro, in AssemblyScript.
//
//     import * as ostro from "./ostro";
//
//     export function ostro_fn_hello(): i32 {
//       ostro.begin();
//       ostro.respText("hello, ");
//       ostro.resp(ostro.arg(0));
//       return 0;
//     }
//
//     asc index.ts -o hello.wasm -O3 --runtime stub --use abort=ostro/abort
//
// What must hold:
//   - Every exported function calls begin() first. It frees all memory of the call
//     before: do not keep objects in globals. Numbers in globals stay, as a cache
//     only, for calls of one function run in several instances.
//   - A function's writes are applied when it has returned 0, all at once. Any
//     other result, fail() and a trap apply nothing.
//   - Values stay as they were when they were read, until the call's end.
//   - A module that exports ostro_area (export { ostro_area } from "./ostro") gets
//     arguments and gives responses without a call of the host each.

// ---- The interface itself: docs/function-abi.md ----

@external("ostro", "args") declare function abi_args(buf: usize, cap: usize): u32;
@external("ostro", "get") declare function abi_get(table: u32, key: usize, keyLen: u32, buf: usize, cap: u32): i64;
@external("ostro", "read") declare function abi_read(view: u32, offset: u32, buf: usize, len: u32): i32;
@external("ostro", "multiget") declare function abi_multiget(table: u32, keys: usize, n: u32, results: usize, buf: usize, cap: u32): i32;
@external("ostro", "alloc") declare function abi_alloc(table: u32, key: usize, keyLen: u32, len: u32): i32;
@external("ostro", "fill") declare function abi_fill(buffer: i32, offset: u32, ptr: usize, len: u32): i32;
@external("ostro", "put") declare function abi_put(buffer: i32, ttlMillis: i64): i32;
@external("ostro", "set") declare function abi_set(table: u32, key: usize, keyLen: u32, ptr: usize, len: u32, ttlMillis: i64): i32;
@external("ostro", "del") declare function abi_del(table: u32, key: usize, keyLen: u32): i32;
@external("ostro", "scan") declare function abi_scan(table: u32, cursor: usize, prefix: usize, prefixLen: u32, buf: usize, cap: u32, flags: u32): i32;
@external("ostro", "resp") declare function abi_resp(ptr: usize, len: u32): i32;
@external("ostro", "yield") declare function abi_yield(): void;
@external("ostro", "log") declare function abi_log(level: u32, ptr: usize, len: u32): void;
@external("ostro", "now") declare function abi_now(): i64;
@external("ostro", "random") declare function abi_random(ptr: usize, len: u32): void;
@external("ostro", "fail") declare function abi_fail(code: i32, ptr: usize, len: u32): void;

/** What calls of the store return if they fail. */
export namespace Status {
  /** There is no such key. */
  export const Absent: i32 = -1;
  /** Another node has this key: use one hash tag, as in {user7}:friends. */
  export const Elsewhere: i32 = -2;
  /** The key or the value is too large. */
  export const TooLarge: i32 = -3;
  /** The function was invoked for reading only. */
  export const ReadOnly: i32 = -4;
  /** No such table, or it is not the tenant's. */
  export const NoTable: i32 = -5;
  /** The store has no room for this write. */
  export const Full: i32 = -6;
}

export enum Level { Debug, Info, Warning, Error }

// ---- The area: arguments are put there before a call, a response is taken from there after it ----

const ROOM: u32 = 1024;
const AREA: usize = memory.data(24, 8), ARGS: usize = memory.data(1024, 8), RESP: usize = memory.data(1024, 8);

/** Tells the host where it is. Unless the module exports it, there is none. */
export function ostro_area(): i32 {
  store<u32>(AREA, <u32>ARGS);
  store<u32>(AREA, ROOM, 4);
  store<u32>(AREA, <u32>RESP, 12);
  store<u32>(AREA, ROOM, 16);
  return <i32>AREA;
}

// ---- Calls ----

// The block of args, 0 until it is asked for.
let block: usize = 0;

/** Begins a call: all memory of the one before is free. */
export function begin(): void {
  __reset();
  block = 0;
}

/** Ends the call with an error that carries code and message; nothing is applied. */
export function fail(code: i32, message: string): void {
  const text = String.UTF8.encode(message);
  abi_fail(code, changetype<usize>(text), text.byteLength);
  unreachable();
}

/** What AssemblyScript calls when it gives up: see --use. */
export function abort(message: string | null, file: string | null, line: u32, _column: u32): void {
  const what = message ? message : "abort";
  fail(243, file ? what + " at " + file + ":" + line.toString() : what);
}

// Ends the call where a status other than absent is no answer.
function must(status: i32): void {
  if (status >= 0) return;
  switch (status) {
    case Status.Elsewhere: return fail(242, "another node has this key: use one hash tag for all keys of a call");
    case Status.TooLarge: return fail(242, "a key or value is too large");
    case Status.ReadOnly: return fail(242, "invoked for reading only");
    case Status.NoTable: return fail(242, "no such table");
    case Status.Full: return fail(242, "the store is full");
    default: return fail(242, "the store refused");
  }
}

// ---- Bytes ----

// An array of len bytes with any content.
function room(len: u32): Uint8Array {
  return Uint8Array.wrap(changetype<ArrayBuffer>(__new(len, idof<ArrayBuffer>())));
}

/** The text's bytes. */
export function bytes(text: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(text));
}

/** The bytes as text. */
export function text(b: Uint8Array): string {
  return String.UTF8.decodeUnsafe(b.dataStart, b.byteLength);
}

// ---- What the function was invoked with ----

function args(): usize {
  if (block != 0) return block;
  if (load<u32>(AREA, 8) - 1 < load<u32>(AREA, 4)) { // A length of 0 is none.
    block = ARGS;
    return block;
  }
  let buf = room(1024);
  const len = abi_args(buf.dataStart, 1024);
  if (len > 1024) {
    buf = room(len);
    abi_args(buf.dataStart, len);
  }
  block = buf.dataStart;
  return block;
}

function nth(n: u32): Uint8Array {
  const at = args();
  let from = at + 8 + 4 * (keys() + argCount());
  for (let i: u32 = 0; i < n; i++) from += load<u32>(at + 8 + 4 * i);
  const len = load<u32>(at + 8 + 4 * n);
  const piece = room(len);
  memory.copy(piece.dataStart, from, len);
  return piece;
}

/** How many keys the invocation has. */
export function keys(): u32 {
  return load<u32>(args());
}

/** How many arguments the invocation has. */
export function argCount(): u32 {
  return load<u32>(args() + 4);
}

/** The i-th key; the call fails without it. */
export function key(i: u32): Uint8Array {
  if (i >= keys()) fail(241, "a key is missing");
  return nth(i);
}

/** The i-th argument; the call fails without it. */
export function arg(i: u32): Uint8Array {
  if (i >= argCount()) fail(241, "an argument is missing");
  return nth(keys() + i);
}

/** The i-th argument as a decimal number; the call fails if it is none. */
export function argNumber(i: u32): i64 {
  return number(arg(i), 241, "an argument should be a number");
}

/** Decimal digits, with a minus if need be, as a number; the call fails with code and message if they are none. */
export function number(digits: Uint8Array, code: i32, message: string): i64 {
  const minus: i32 = digits.length > 0 && digits[0] == 45 ? 1 : 0;
  const most: u64 = <u64>i64.MAX_VALUE + minus;
  let n: u64 = 0;
  if (digits.length == minus) fail(code, message);
  for (let at = minus; at < digits.length; at++) {
    const digit = <u64>digits[at] - 48;
    if (digit > 9 || n > (most - digit) / 10) fail(code, message);
    n = n * 10 + digit;
  }
  return minus ? <i64>(0 - n) : <i64>n;
}

// ---- The store ----

/** The value of a key, null if it is not there. */
export function get(key: Uint8Array, table: u32 = 0): Uint8Array | null {
  let buf = room(512);
  const found = abi_get(table, key.dataStart, key.byteLength, buf.dataStart, 512);
  if (found == Status.Absent) return null;
  must(found < 0 ? <i32>found : 0);
  const len = <u32>found, view = <u32>(found >> 32);
  if (view == 0) return Uint8Array.wrap(buf.buffer, 0, len);
  buf = room(len);
  abi_read(view, 0, buf.dataStart, len);
  return buf;
}

/** The values of many keys, 4,096 at most, in the keys' order; null for those that are not there. */
export function multiget(keys: Uint8Array[], table: u32 = 0): Array<Uint8Array | null> {
  const n = keys.length, spans = room(8 * n), results = room(16 * n), buf = room(64 * n);
  for (let i = 0; i < n; i++) {
    store<u32>(spans.dataStart + 8 * i, keys[i].dataStart);
    store<u32>(spans.dataStart + 8 * i, keys[i].byteLength, 4);
  }
  must(abi_multiget(table, spans.dataStart, n, results.dataStart, buf.dataStart, buf.byteLength));
  const values = new Array<Uint8Array | null>(n);
  for (let i = 0; i < n; i++) {
    const at = results.dataStart + 16 * i, len = load<i32>(at, 4), view = load<u32>(at, 8);
    if (len == Status.Absent) continue;
    must(len);
    if (view == 0) {
      values[i] = Uint8Array.wrap(buf.buffer, len > 0 ? <i32>(load<u32>(at) - buf.dataStart) : 0, len);
      continue;
    }
    const value = room(len);
    abi_read(view, 0, value.dataStart, len);
    values[i] = value;
  }
  return values;
}

/** Gives a key a value, for some milliseconds or, with 0, for good. */
export function set(key: Uint8Array, value: Uint8Array, ttlMillis: i64 = 0, table: u32 = 0): void {
  must(abi_set(table, key.dataStart, key.byteLength, value.dataStart, value.byteLength, ttlMillis));
}

/** Removes a key, if it is there. */
export function del(key: Uint8Array, table: u32 = 0): void {
  must(abi_del(table, key.dataStart, key.byteLength));
}

/** A new value of exactly len bytes in the store's memory, to be filled and put. */
export function alloc(key: Uint8Array, len: u32, table: u32 = 0): Buffer {
  const id = abi_alloc(table, key.dataStart, key.byteLength, len);
  must(id);
  return new Buffer(id);
}

/** A value that is written piece by piece. Bytes never filled are zero. */
export class Buffer {
  private next: u32 = 0;

  constructor(private id: i32) {}

  /** Appends to what was pushed before. */
  push(piece: Uint8Array): void {
    this.fill(this.next, piece);
    this.next += piece.byteLength;
  }

  /** Writes at any place of the value. */
  fill(offset: u32, piece: Uint8Array): void {
    must(abi_fill(this.id, offset, piece.dataStart, piece.byteLength));
  }

  /** The buffer becomes its key's value. */
  put(ttlMillis: i64 = 0): void {
    must(abi_put(this.id, ttlMillis));
  }
}

/**
 * A walk over the tenant's keys of this node that begin with a prefix, in no order:
 *
 *     const users = new ostro.Scan(ostro.bytes("user:"));
 *     while (users.next()) { users.key; users.value; }
 *
 * key and value are gone with the next step.
 */
export class Scan {
  key: Uint8Array = new Uint8Array(0);
  /** Empty in a scan without values. */
  value: Uint8Array = new Uint8Array(0);
  /** How many entries were left out, as they are larger than the scan's room. */
  skipped: u32 = 0;
  private buf: Uint8Array;
  private cursor: Uint8Array = new Uint8Array(8);
  private at: i32 = 0;
  private left: i32 = 0;
  private last: bool = false;

  constructor(private prefix: Uint8Array, private values: bool = true, private table: u32 = 0, space: u32 = 16384) {
    this.buf = room(space);
  }

  next(): bool {
    while (this.left == 0) {
      if (this.last) return false;
      this.refill();
    }
    this.left--;
    const from = this.buf.dataStart + this.at, keyLen = load<u32>(from);
    const valueLen = this.values ? load<u32>(from, 4) : 0;
    this.key = Uint8Array.wrap(this.buf.buffer, this.at + 8, keyLen);
    this.value = Uint8Array.wrap(this.buf.buffer, this.at + 8 + keyLen, valueLen);
    this.at += 8 + keyLen + valueLen;
    return true;
  }

  private refill(): void {
    const n = abi_scan(this.table, this.cursor.dataStart, this.prefix.dataStart, this.prefix.byteLength,
      this.buf.dataStart, this.buf.byteLength, this.values ? 1 : 0);
    this.last = load<u64>(this.cursor.dataStart) == 0;
    this.at = 0;
    if (n == Status.TooLarge) {
      this.skipped++;
      return;
    }
    must(n);
    this.left = n;
  }
}

// ---- The response and the rest ----

/** Appends to the response. */
export function resp(piece: Uint8Array): void {
  const at = load<u32>(AREA, 20), len = <u32>piece.byteLength;
  if (len <= load<u32>(AREA, 16) - at) {
    memory.copy(RESP + at, piece.dataStart, len);
    store<u32>(AREA, at + len, 20);
    return;
  }
  if (at > 0) abi_resp(RESP, at); // What is too large follows what was left.
  store<u32>(AREA, 0, 20);
  abi_resp(piece.dataStart, len);
}

/** Appends text to the response. */
export function respText(text: string): void {
  resp(bytes(text));
}

/** Lets others run. Never necessary: every call of the store does. */
export function yieldNow(): void {
  abi_yield();
}

/** A line for the function's log. */
export function log(level: Level, line: string): void {
  const b = bytes(line);
  abi_log(level, b.dataStart, b.byteLength);
}

/** Nanoseconds since 1970, in steps of a millisecond. */
export function now(): i64 {
  return abi_now();
}

/** n random bytes. */
export function random(n: u32): Uint8Array {
  const b = room(n);
  abi_random(b.dataStart, n);
  return b;
}
