// Uses everything that the SDK has; probe_test.go says what must come out.
#include "ostro.h"

static void resp_bytes(ostro_bytes b)
{
	ostro_resp_number(b.len);
	ostro_resp_text(":");
	ostro_resp(b);
	ostro_resp_text(";");
}

OSTRO_FN(args)
{
	for (uint32_t i = 0; i < ostro_nkeys(); i++)
		resp_bytes(ostro_key(i));
	ostro_resp_text("|");
	for (uint32_t i = 0; i < ostro_nargs(); i++)
		resp_bytes(ostro_arg(i));
	return 0;
}

OSTRO_FN(get)
{
	ostro_bytes value;
	int32_t status = ostro_get_in((uint32_t)ostro_arg_number(0), ostro_key(0), &value);
	if (status == OSTRO_ABSENT)
		return ostro_resp_text("absent"), 0;
	ostro_must(status);
	resp_bytes(value);
	return 0;
}

OSTRO_FN(multiget)
{
	uint32_t n = ostro_nargs();
	ostro_bytes *keys = ostro_mem(n * (uint32_t)sizeof *keys);
	ostro_found *found = ostro_mem(n * (uint32_t)sizeof *found);
	for (uint32_t i = 0; i < n; i++)
		keys[i] = ostro_arg(i);
	ostro_must(ostro_multiget(keys, n, found));
	for (uint32_t i = 0; i < n; i++)
		if (found[i].status == OSTRO_ABSENT)
			ostro_resp_text("absent;");
		else
			resp_bytes(found[i].value);
	return 0;
}

OSTRO_FN(build)
{
	uint32_t len = 2;
	for (uint32_t i = 1; i < ostro_nargs(); i++)
		len += ostro_arg(i).len;
	ostro_buffer b = ostro_alloc(ostro_key(0), len);
	for (uint32_t i = 1; i < ostro_nargs(); i++)
		ostro_fill(&b, ostro_arg(i).ptr, ostro_arg(i).len);
	ostro_must(ostro_put(b, ostro_arg_number(0)));
	ostro_bytes value;
	ostro_must(ostro_get(ostro_key(0), &value)); // Its own write.
	resp_bytes(value);
	return 0;
}

OSTRO_FN(del)
{
	ostro_must(ostro_set_in(0, OSTRO_TEXT("beside"), ostro_key(0), 7));
	ostro_must(ostro_del(ostro_key(0)));
	return 0;
}

OSTRO_FN(scan)
{
	ostro_scan s = ostro_scan_begin(ostro_key(0), true);
	ostro_bytes key, value;
	while (ostro_scan_next(&s, &key, &value)) {
		resp_bytes(key);
		resp_bytes(value);
	}
	ostro_must(s.status);
	ostro_resp_number(s.skipped);
	return 0;
}

OSTRO_FN(rest)
{
	ostro_log(OSTRO_DEBUG, "one");
	ostro_log(OSTRO_ERROR, "two");
	ostro_yield();
	ostro_resp_number(ostro_now());
	ostro_resp_text(ostro_random() != ostro_random() ? " random" : " same");
	return 0;
}

OSTRO_FN(fail) { ostro_fail((int32_t)ostro_arg_number(0), "on purpose"); }
OSTRO_FN(code) { return (int32_t)ostro_arg_number(0); }
