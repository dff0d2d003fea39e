// Functions that get their arguments and leave their response in memory.
#include "ostro.h"

static u8 args_room[256], resp_room[256];
static struct {
  u8 *args;
  u32 args_cap, args_len;
  u8 *resp;
  u32 resp_cap, resp_len;
} area = {args_room, sizeof args_room, 0, resp_room, sizeof resp_room, 0};
static void *where = &area;

__attribute__((export_name("ostro_area"))) void *find_area(void) { return where; }

FN(empty) { return 0; }

// get: the value of the key, straight into the response.
FN(get) {
  if (area.args_len > sizeof args_room) return 1;
  u32 *block = (u32 *)args_room;
  i64 r = get(0, args_room + 8 + 4 * (block[0] + block[1]), block[2], resp_room, sizeof resp_room);
  if (r < 0) return 2;
  area.resp_len = (u32)r;
  return 0;
}

// echo: the arguments as they came, by a call if they did not fit, and what was in the area before.
FN(echo) {
  if (area.resp_len != 0) return 9;
  if (area.args_len <= sizeof args_room) {
    for (u32 i = 0; i < area.args_len; i++) resp_room[i] = args_room[i];
    area.resp_len = area.args_len;
    return 0;
  }
  u32 n = args(argbuf, sizeof argbuf);
  if (n != area.args_len) return 3;
  resp(argbuf, n);
  resp_room[0] = '!';
  area.resp_len = 1;
  return 0;
}

// long: more than anybody copies while others wait, for nothing.
FN(long) {
  static u8 much[1 << 20];
  much[sizeof much - 1] = '.';
  area.resp = much;
  area.resp_cap = area.resp_len = sizeof much;
  return 0;
}

// lie: about what is where. The argument says how.
FN(lie) {
  switch (args_room[8 + 4 * 2 + 1]) {
  case 'l': area.resp_len = area.resp_cap + 1; return 0;
  case 'h': area.resp_cap = area.resp_len = 0xffffffff; return 0;
  case 'p': area.resp = (u8 *)0xfffffff0; area.resp_len = 100; return 0;
  case 'a': area.args = (u8 *)0xfffffff0; area.args_cap = 0xffffffff; return 0;
  }
  return 4;
}
