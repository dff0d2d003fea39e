// aggregate: sums a field over the records that another record lists.
//
//   aggregate KEY [WIDTH [OFFSET]]
//
// The value of KEY is a list of keys, each WIDTH bytes wide (30 unless told),
// without gaps. Of every record that is there the 8 bytes at OFFSET (0 unless
// told), a little endian number with a sign, are added, modulo 2^64. The response is the sum
// in decimal; a record that is missing or too short fails the call, for the sum
// would be a wrong one.
#include "ostro.h"

enum { NO_LIST = 1, BAD_LIST = 2, NO_RECORD = 3, SHORT_RECORD = 4, BATCH = 32 };

static uint64_t field(const ostro_found *record, uint64_t offset)
{
	if (record->status == OSTRO_ABSENT)
		ostro_fail(NO_RECORD, "a record of the list is missing");
	ostro_must(record->status);
	if (record->value.len < 8 || offset > record->value.len - 8)
		ostro_fail(SHORT_RECORD, "a record has no 8 bytes at the offset");
	return ostro_u64(record->value.ptr + offset);
}

OSTRO_FN(aggregate)
{
	uint64_t width = ostro_nargs() > 0 ? (uint64_t)ostro_arg_number(0) : 30;
	uint64_t offset = ostro_nargs() > 1 ? (uint64_t)ostro_arg_number(1) : 0;
	ostro_bytes list;
	if (ostro_get(ostro_key(0), &list) == OSTRO_ABSENT)
		ostro_fail(NO_LIST, "there is no list under this key");
	if (width == 0 || list.len % width != 0)
		ostro_fail(BAD_LIST, "the list's length is no multiple of the keys' width");

	uint64_t sum = 0;
	void *mark = ostro_mark();
	for (uint32_t at = 0; at < list.len;) {
		ostro_bytes keys[BATCH];
		ostro_found found[BATCH];
		uint32_t n = 0;
		for (; n < BATCH && at < list.len; n++, at += (uint32_t)width)
			keys[n] = (ostro_bytes){list.ptr + at, (uint32_t)width};
		ostro_must(ostro_multiget(keys, n, found));
		for (uint32_t i = 0; i < n; i++)
			sum += field(&found[i], offset);
		ostro_release(mark);
	}
	ostro_resp_number((int64_t)sum);
	return 0;
}
