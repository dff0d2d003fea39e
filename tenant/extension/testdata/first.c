// Functions that may find the value of their first key in the area.
#include "ostro.h"

static u8 args_room[256], resp_room[256], first_room[64];
static struct {
  u8 *args;
  u32 args_cap, args_len;
  u8 *resp;
  u32 resp_cap, resp_len;
  u8 *first;
  u32 first_cap;
  i32 first_len;
  u32 first_used;
} area = {args_room, sizeof args_room, 0, resp_room, sizeof resp_room, 0, first_room, sizeof first_room, -1, 0};

__attribute__((export_name("ostro_area"))) void *find_area(void) { return &area; }
__attribute__((export_name("ostro_first"))) void has_first(void) {}

static u8 *key(u32 *len) {
  u32 *block = (u32 *)args_room;
  *len = block[2];
  return args_room + 8 + 4 * (block[0] + block[1]);
}

static void answer(u8 how, i32 n) {
  resp_room[0] = how;
  area.resp_len = 1 + (u32)n;
}

// read: the value of the key behind a letter: p if it was put, g if it took a call.
FN(read) {
  if (area.first_len >= 0) {
    area.first_used = 1;
    for (i32 i = 0; i < area.first_len; i++) resp_room[1 + i] = first_room[i];
    answer('p', area.first_len);
    return 0;
  }
  u32 len;
  u8 *k = key(&len);
  i64 n = get(0, k, len, resp_room + 1, sizeof resp_room - 1);
  if (n < 0) return 2;
  answer('g', (i32)n);
  return 0;
}

// maybe: reads the key as read does if there is an argument, and else leaves it.
FN(maybe) {
  if (((u32 *)args_room)[1] > 0) return fn_read();
  answer(area.first_len >= 0 ? 'p' : '-', 0);
  return 0;
}

// blind: writes the key, and looks at nothing.
FN(blind) {
  u32 len;
  u8 *k = key(&len);
  answer(area.first_len >= 0 ? 'p' : '-', 0);
  return ((u32 *)args_room)[1] > 0 ? fn_read() : set(0, k, len, "x", 1, 0);
}

// lie: about where the value goes. The argument says how.
FN(lie) {
  switch (args_room[8 + 4 * 2 + ((u32 *)args_room)[2]]) {
  case 'p': area.first = (u8 *)0xfffffff0; return 0;
  case 'c': area.first_cap = 0xffffffff; return 0;
  case 'n': area.first_cap = 0; return 0;
  }
  return 4;
}
