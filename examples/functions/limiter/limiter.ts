// limiter: a rate limiter, one token bucket a key.
//
//   take KEY RATE BURST [COST]    asks for COST tokens, 1 unless told
//   peek KEY RATE BURST           how many there are
//
// A bucket holds BURST tokens and gets RATE of them a second. take answers
// "1 LEFT 0" if there were enough, and "0 LEFT MILLIS" if not: so long it takes
// until there are. A bucket that nobody asks forgets itself when it is full.
//
// The record is f64 tokens, i64 time of the last change in nanoseconds. Time is
// the tenant's clock, which never goes back.
import * as ostro from "../../../sdk/as/ostro";

const NANOS: f64 = 1e9;

function tokens(key: Uint8Array, rate: f64, burst: f64, now: i64): f64 {
  const bucket = ostro.get(key);
  if (bucket == null) return burst;
  if (bucket.byteLength != 16) ostro.fail(1, "the key holds no bucket");
  const had = load<f64>(bucket.dataStart), since = load<i64>(bucket.dataStart, 8);
  return min(burst, had + <f64>max(0, now - since) / NANOS * rate);
}

function number(i: u32): f64 {
  const n = ostro.argNumber(i);
  if (n <= 0) ostro.fail(2, "RATE, BURST and COST should be above 0");
  return <f64>n;
}

export function ostro_fn_take(): i32 {
  ostro.begin();
  const key = ostro.key(0), rate = number(0), burst = number(1);
  const cost = ostro.argCount() > 2 ? number(2) : 1;
  if (cost > burst) ostro.fail(3, "COST is more than a bucket can hold");
  const now = ostro.now();
  let left = tokens(key, rate, burst, now);
  if (left < cost) {
    const millis = Math.ceil((cost - left) / rate * 1000);
    ostro.respText("0 " + (<i64>left).toString() + " " + (<i64>millis).toString());
    return 0;
  }
  left -= cost;
  const bucket = new Uint8Array(16);
  store<f64>(bucket.dataStart, left);
  store<i64>(bucket.dataStart, now, 8);
  ostro.set(key, bucket, <i64>Math.ceil((burst - left) / rate * 1000) + 1);
  ostro.respText("1 " + (<i64>left).toString() + " 0");
  return 0;
}

export function ostro_fn_peek(): i32 {
  ostro.begin();
  const left = tokens(ostro.key(0), number(0), number(1), ostro.now());
  ostro.respText((<i64>left).toString());
  return 0;
}
