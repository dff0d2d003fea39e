// Uses everything that the SDK has; probe_test.go says what must come out.
import * as ostro from "./ostro";

function respBytes(b: Uint8Array): void {
  ostro.respText(b.byteLength.toString() + ":");
  ostro.resp(b);
  ostro.respText(";");
}

export function ostro_fn_args(): i32 {
  ostro.begin();
  for (let i: u32 = 0; i < ostro.keys(); i++) respBytes(ostro.key(i));
  ostro.respText("|");
  for (let i: u32 = 0; i < ostro.argCount(); i++) respBytes(ostro.arg(i));
  return 0;
}

export function ostro_fn_get(): i32 {
  ostro.begin();
  const value = ostro.get(ostro.key(0), <u32>ostro.argNumber(0));
  if (value == null) ostro.respText("absent");
  else respBytes(value);
  return 0;
}

export function ostro_fn_multiget(): i32 {
  ostro.begin();
  const keys = new Array<Uint8Array>();
  for (let i: u32 = 0; i < ostro.argCount(); i++) keys.push(ostro.arg(i));
  const values = ostro.multiget(keys);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value == null) ostro.respText("absent;");
    else respBytes(value);
  }
  return 0;
}

export function ostro_fn_build(): i32 {
  ostro.begin();
  let len = 2;
  for (let i: u32 = 1; i < ostro.argCount(); i++) len += ostro.arg(i).byteLength;
  const buffer = ostro.alloc(ostro.key(0), len);
  for (let i: u32 = 1; i < ostro.argCount(); i++) buffer.push(ostro.arg(i));
  buffer.put(ostro.argNumber(0));
  respBytes(ostro.get(ostro.key(0))!); // Its own write.
  return 0;
}

export function ostro_fn_del(): i32 {
  ostro.begin();
  ostro.set(ostro.bytes("beside"), ostro.key(0), 7);
  ostro.del(ostro.key(0));
  return 0;
}

export function ostro_fn_scan(): i32 {
  ostro.begin();
  const scan = new ostro.Scan(ostro.key(0));
  while (scan.next()) {
    respBytes(scan.key);
    respBytes(scan.value);
  }
  ostro.respText(scan.skipped.toString());
  return 0;
}

export function ostro_fn_rest(): i32 {
  ostro.begin();
  ostro.log(ostro.Level.Debug, "one");
  ostro.log(ostro.Level.Error, "two");
  ostro.yieldNow();
  ostro.respText(ostro.now().toString());
  const a = ostro.text(ostro.random(8)), b = ostro.text(ostro.random(8));
  ostro.respText(a != b ? " random" : " same");
  return 0;
}

export function ostro_fn_fail(): i32 {
  ostro.begin();
  ostro.fail(<i32>ostro.argNumber(0), "on purpose");
  return 0;
}

export function ostro_fn_code(): i32 {
  ostro.begin();
  return <i32>ostro.argNumber(0);
}

export function ostro_fn_panic(): i32 {
  ostro.begin();
  return new Uint8Array(1)[<i32>ostro.keys() + 1];
}
