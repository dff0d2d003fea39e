// The functions that `ostro bench splinter` calls beside the shipped examples: as
// little as can be around what is measured.
//
//   get KEY            the value
//   put KEY VALUE      sets it; no answer
//   many KEY N EVERY   N gets of the records from KEY on, whose last twelve digits are
//                      counted up; a yield after every EVERY of them, 0: none. How many were found
//   power KEY N        adds the first fields of the two records that KEY lists and
//                      raises the sum to the power N + 1, modulo 2^64
//   loop               never ends
#include "ostro.h"

enum { NO_RECORD = 1, BAD_LIST = 2, KEY_BYTES = 30, DIGITS = 12 };

static ostro_bytes found(ostro_bytes key)
{
	ostro_bytes value;
	int32_t status = ostro_get(key, &value);
	if (status == OSTRO_ABSENT)
		ostro_fail(NO_RECORD, "there is no such record");
	ostro_must(status);
	return value;
}

OSTRO_FN(get)
{
	ostro_resp_view(found(ostro_key(0)));
	return 0;
}

OSTRO_FN(put)
{
	ostro_must(ostro_set(ostro_key(0), ostro_arg(0)));
	return 0;
}

// count_up makes the key of the next record.
static void count_up(uint8_t *key, uint32_t len)
{
	for (uint32_t i = 1; i <= DIGITS && i <= len; i++) {
		if (key[len - i] != '9') {
			key[len - i]++;
			return;
		}
		key[len - i] = '0';
	}
}

OSTRO_FN(many)
{
	ostro_bytes first = ostro_key(0);
	int64_t n = ostro_arg_number(0), every = ostro_arg_number(1), there = 0;
	uint8_t *key = ostro_mem(first.len);
	__builtin_memcpy(key, first.ptr, first.len);
	void *mark = ostro_mark();
	for (int64_t i = 1; i <= n; i++) {
		ostro_bytes value;
		there += ostro_get((ostro_bytes){key, first.len}, &value) == OSTRO_OK;
		ostro_release(mark);
		count_up(key, first.len);
		if (every > 0 && i % every == 0)
			ostro_yield();
	}
	ostro_resp_number(there);
	return 0;
}

OSTRO_FN(power)
{
	ostro_bytes list = found(ostro_key(0));
	if (list.len != 2 * KEY_BYTES)
		ostro_fail(BAD_LIST, "the list should have two keys of 30 bytes");
	uint64_t sum = 0;
	for (uint32_t i = 0; i < 2; i++) {
		ostro_bytes value = found((ostro_bytes){list.ptr + KEY_BYTES * i, KEY_BYTES});
		if (value.len < 8)
			ostro_fail(BAD_LIST, "a record has no 8 bytes");
		sum += ostro_u64(value.ptr);
	}
	uint64_t power = sum;
	for (int64_t n = ostro_arg_number(0); n > 0; n--)
		power *= sum;
	ostro_resp_number((int64_t)power);
	return 0;
}

OSTRO_FN(loop)
{
	for (volatile uint32_t i = 0;; i++)
		;
}
