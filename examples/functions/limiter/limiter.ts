// limiter: a rate limiter, one token bucket a key.
//
//   take KEY RATE BURST [COST]    asks for COST tokens, 1 unless told
//   peek KEY RATE BURST           how many there are
//
// A bucket holds BURST tokens and gets RATE of them a second. take answers
// "1 LEFT 0" if there were enough, and "0 LEFT MILLIS" if not: so long it takes
// until there are. A bucket that nobody asks forgets itself when it is full.
//
// RATE, BURST and COST are from 1 to 1,000,000,000.
//
// The record is i64 tokens in billionths, i64 time of the last change in
// nanoseconds: RATE times nanoseconds are billionths of tokens, so nothing is ever
// rounded. Time is the tenant's clock, which never goes back.
import * as ostro from "../../../sdk/as/ostro";
export { ostro_area } from "../../../sdk/as/ostro";

const WHOLE: i64 = 1_000_000_000;

function tokens(key: Uint8Array, rate: i64, burst: i64, now: i64): i64 {
  const bucket = ostro.get(key);
  if (bucket == null) return burst * WHOLE;
  if (bucket.byteLength != 16) ostro.fail(1, "the key holds no bucket");
  const had = load<i64>(bucket.dataStart), since = load<i64>(bucket.dataStart, 8);
  const filling = (burst * WHOLE - had) / rate + 1; // nanoseconds until it is full
  const passed = max<i64>(0, now - since);
  return passed >= filling ? burst * WHOLE : had + passed * rate;
}

function number(i: u32): i64 {
  const n = ostro.argNumber(i);
  if (n <= 0 || n > WHOLE) ostro.fail(2, "RATE, BURST and COST should be from 1 to 1000000000");
  return n;
}

// Milliseconds until there are so many more.
function millis(lacking: i64, rate: i64): i64 {
  return (lacking + rate * 1_000_000 - 1) / (rate * 1_000_000);
}

export function ostro_fn_take(): i32 {
  ostro.begin();
  const key = ostro.key(0), rate = number(0), burst = number(1);
  const cost = ostro.argCount() > 2 ? number(2) : 1;
  if (cost > burst) ostro.fail(3, "COST is more than a bucket can hold");
  const now = ostro.now();
  const left = tokens(key, rate, burst, now) - cost * WHOLE;
  if (left < 0) {
    ostro.respText("0 " + ((left + cost * WHOLE) / WHOLE).toString() + " " + millis(-left, rate).toString());
    return 0;
  }
  const bucket = new Uint8Array(16);
  store<i64>(bucket.dataStart, left);
  store<i64>(bucket.dataStart, now, 8);
  ostro.set(key, bucket, millis(burst * WHOLE - left, rate) + 1);
  ostro.respText("1 " + (left / WHOLE).toString() + " 0");
  return 0;
}

export function ostro_fn_peek(): i32 {
  ostro.begin();
  const left = tokens(ostro.key(0), number(0), number(1), ostro.now());
  ostro.respText((left / WHOLE).toString());
  return 0;
}
