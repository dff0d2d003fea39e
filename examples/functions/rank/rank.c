// rank: members ordered by score, the highest first, as in a table of winners.
//
//   rank_set BOARD MEMBER SCORE   gives a member a score; 1 if it is new, else 0
//   rank_add BOARD MEMBER BY      adds to its score, which begins at 0; the sum
//   rank_del BOARD MEMBER         1 if it was there, else 0
//   rank_get BOARD MEMBER         "SCORE POSITION", the first is 0; nothing if it is not there
//   rank_top BOARD FROM LIMIT     "SCORE MEMBER" lines from a position on
//   rank_count BOARD              how many there are
//
// A member has 1 to 39 bytes, a score 64 bits with a sign; equal scores are
// ordered by members' bytes. All records of a board have its name as their hash tag:
//
//   {BOARD}:m:MEMBER   the member's score
//   {BOARD}:r          the parts, in order: u32 next name, u32 zero, part*
//   {BOARD}:p:N        a part's entries, in order
//
// A part has 1 to 128 entries. A change rewrites one part and the list of parts,
// which grows by 56 bytes per 64 to 128 members: for boards of tens of thousands.
#include "ostro.h"

enum { NO_BOARD = 1, BAD_MEMBER = 2, DAMAGED = 3, OVERFLOW = 4, MOST = 128, NAME = 64, LINE = 20 + 1 + 39 + 1 };

typedef struct {
	int64_t score;
	uint8_t len;
	uint8_t member[39];
} entry;

typedef struct {
	entry first;
	uint32_t name, count;
} part;

typedef struct {
	uint32_t next, zero;
	part parts[];
} root;

typedef struct {
	ostro_bytes name;
	uint32_t next, used;
	part *parts; // with room for one more
} board;

// ---- Keys and entries ----

static ostro_bytes key_of(ostro_bytes name, const char *kind, const void *rest, uint32_t len)
{
	uint8_t *at = ostro_mem(name.len + 5 + len), *key = at;
	*at++ = '{';
	memcpy(at, name.ptr, name.len);
	at += name.len;
	*at++ = '}';
	memcpy(at, kind, 3);
	at += 3;
	if (kind[1] == 'r')
		at--;
	memcpy(at, rest, len);
	return (ostro_bytes){key, (uint32_t)(at - key) + len};
}

static ostro_bytes part_key(const board *b, uint32_t name)
{
	uint8_t room[20];
	ostro_bytes digits = ostro_decimal(name, room);
	return key_of(b->name, ":p:", digits.ptr, digits.len);
}

static ostro_bytes member_key(const board *b, const entry *e) { return key_of(b->name, ":m:", e->member, e->len); }

static entry member_arg(uint32_t i)
{
	ostro_bytes m = ostro_arg(i);
	if (m.len < 1 || m.len > 39)
		ostro_fail(BAD_MEMBER, "a member has 1 to 39 bytes");
	entry e = {0, (uint8_t)m.len, {0}};
	memcpy(e.member, m.ptr, m.len);
	return e;
}

// before tells whether a has a place in front of b. Members are padded with
// zeros, so that one comparison does for those of all lengths but equal ones.
static bool before(const entry *a, const entry *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	int order = memcmp(a->member, b->member, sizeof a->member);
	return order != 0 ? order < 0 : a->len < b->len;
}

// ---- Boards ----

static board load(void)
{
	board b = {.name = ostro_key(0)};
	if (b.name.len < 1 || b.name.len > NAME)
		ostro_fail(NO_BOARD, "a board's name has 1 to 64 bytes");
	for (uint32_t i = 0; i < b.name.len; i++)
		if (b.name.ptr[i] == '{' || b.name.ptr[i] == '}')
			ostro_fail(NO_BOARD, "a board's name has no braces");
	ostro_bytes found;
	int32_t status = ostro_get(key_of(b.name, ":r:", NULL, 0), &found);
	if (status == OSTRO_ABSENT)
		return b.parts = ostro_mem(sizeof(part)), b;
	ostro_must(status);
	if (found.len < sizeof(root) || (found.len - sizeof(root)) % sizeof(part) != 0)
		ostro_fail(DAMAGED, "the board is damaged");
	const root *r = (const root *)found.ptr;
	b.next = r->next;
	b.used = (uint32_t)((found.len - sizeof(root)) / sizeof(part));
	b.parts = ostro_mem((uint32_t)sizeof(part) * (b.used + 1));
	memcpy(b.parts, r->parts, sizeof(part) * b.used);
	return b;
}

static void save(const board *b)
{
	ostro_bytes key = key_of(b->name, ":r:", NULL, 0);
	if (b->used == 0) {
		ostro_must(ostro_del(key));
		return;
	}
	uint32_t len = (uint32_t)sizeof(part) * b->used, head[2] = {b->next, 0};
	ostro_buffer buffer = ostro_alloc(key, (uint32_t)sizeof head + len);
	ostro_fill(&buffer, head, sizeof head);
	ostro_fill(&buffer, b->parts, len);
	ostro_must(ostro_put(buffer, 0));
}

// place returns the part that an entry belongs to: the last that begins with it
// or before it, or the first of all.
static uint32_t place(const board *b, const entry *e)
{
	uint32_t low = 0, high = b->used;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (before(e, &b->parts[middle].first))
			high = middle;
		else
			low = middle;
	}
	return low;
}

// entries reads a part into memory with room for one entry more.
static entry *entries(const board *b, uint32_t i)
{
	ostro_bytes found;
	ostro_must(ostro_get(part_key(b, b->parts[i].name), &found));
	if (found.len != b->parts[i].count * sizeof(entry) || found.len == 0)
		ostro_fail(DAMAGED, "the board is damaged");
	ostro_mem(sizeof(entry)); // Right behind it, as nothing was taken since.
	return (entry *)found.ptr;
}

// index_of returns where an entry is or should be.
static uint32_t index_of(const entry *all, uint32_t n, const entry *e)
{
	uint32_t low = 0;
	while (n > 0) {
		uint32_t half = n / 2;
		if (before(&all[low + half], e)) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

static void write_part(board *b, uint32_t i, uint32_t name, const entry *all, uint32_t n)
{
	b->parts[i] = (part){all[0], name, n};
	ostro_must(ostro_set(part_key(b, name), (ostro_bytes){(const uint8_t *)all, n * (uint32_t)sizeof(entry)}));
}

static void insert(board *b, const entry *e)
{
	if (b->used == 0) {
		b->used = 1;
		write_part(b, 0, b->next++, e, 1);
		return;
	}
	uint32_t i = place(b, e), n = b->parts[i].count;
	entry *all = entries(b, i);
	uint32_t at = index_of(all, n, e);
	memmove(&all[at + 1], &all[at], (n - at) * sizeof(entry));
	all[at] = *e;
	n++;
	if (n > MOST) {
		uint32_t half = n / 2;
		memmove(&b->parts[i + 2], &b->parts[i + 1], (b->used - i - 1) * sizeof(part));
		b->used++;
		write_part(b, i + 1, b->next++, all + half, n - half);
		n = half;
	}
	write_part(b, i, b->parts[i].name, all, n);
}

static void remove(board *b, const entry *e)
{
	uint32_t i = place(b, e), n = b->used > 0 ? b->parts[i].count : 0;
	entry *all = n > 0 ? entries(b, i) : NULL;
	uint32_t at = index_of(all, n, e);
	if (at == n || before(e, &all[at]))
		ostro_fail(DAMAGED, "the board is damaged");
	if (n == 1) {
		ostro_must(ostro_del(part_key(b, b->parts[i].name)));
		memmove(&b->parts[i], &b->parts[i + 1], (b->used - i - 1) * sizeof(part));
		b->used--;
		return;
	}
	memmove(&all[at], &all[at + 1], (n - at - 1) * sizeof(entry));
	write_part(b, i, b->parts[i].name, all, n - 1);
}

// score_of finds a member's score.
static bool score_of(const board *b, entry *e)
{
	ostro_bytes found;
	int32_t status = ostro_get(member_key(b, e), &found);
	if (status == OSTRO_ABSENT)
		return false;
	ostro_must(status);
	if (found.len != 8)
		ostro_fail(DAMAGED, "the board is damaged");
	e->score = (int64_t)ostro_u64(found.ptr);
	return true;
}

// change gives a member a score in place of what it had.
static void change(board *b, entry *e, bool had, int64_t score)
{
	if (had && e->score == score)
		return;
	if (had)
		remove(b, e);
	// The list of parts has room for one part more each time.
	part *roomy = ostro_mem((uint32_t)sizeof(part) * (b->used + 1));
	memcpy(roomy, b->parts, sizeof(part) * b->used);
	b->parts = roomy;
	e->score = score;
	insert(b, e);
	save(b);
	ostro_must(ostro_set(member_key(b, e), (ostro_bytes){(uint8_t *)&e->score, 8}));
}

// ---- Functions ----

OSTRO_FN(rank_set)
{
	board b = load();
	entry e = member_arg(0);
	bool had = score_of(&b, &e);
	change(&b, &e, had, ostro_arg_number(1));
	ostro_resp_number(!had);
	return 0;
}

OSTRO_FN(rank_add)
{
	board b = load();
	entry e = member_arg(0);
	bool had = score_of(&b, &e);
	int64_t sum;
	if (__builtin_add_overflow(e.score, ostro_arg_number(1), &sum))
		ostro_fail(OVERFLOW, "the sum has more than 64 bits");
	change(&b, &e, had, sum);
	ostro_resp_number(sum);
	return 0;
}

OSTRO_FN(rank_del)
{
	board b = load();
	entry e = member_arg(0);
	bool had = score_of(&b, &e);
	if (had) {
		remove(&b, &e);
		save(&b);
		ostro_must(ostro_del(member_key(&b, &e)));
	}
	ostro_resp_number(had);
	return 0;
}

OSTRO_FN(rank_get)
{
	board b = load();
	entry e = member_arg(0);
	if (!score_of(&b, &e))
		return 0;
	uint32_t i = place(&b, &e);
	int64_t position = index_of(entries(&b, i), b.parts[i].count, &e);
	while (i > 0)
		position += b.parts[--i].count;
	ostro_resp_number(e.score);
	ostro_resp_text(" ");
	ostro_resp_number(position);
	return 0;
}

// line writes "SCORE MEMBER" and returns where it ends.
static uint8_t *line(uint8_t *at, const entry *e)
{
	uint8_t room[20];
	ostro_bytes score = ostro_decimal(e->score, room);
	memcpy(at, score.ptr, score.len);
	at += score.len;
	*at++ = ' ';
	memcpy(at, e->member, e->len);
	at += e->len;
	*at++ = '\n';
	return at;
}

OSTRO_FN(rank_top)
{
	board b = load();
	int64_t from = ostro_arg_number(0), limit = ostro_arg_number(1);
	if (from < 0 || limit < 0)
		ostro_fail(OSTRO_BAD_ARGUMENT, "FROM and LIMIT should be 0 or above");
	for (uint32_t i = 0; i < b.used && limit > 0; i++) {
		if (from >= b.parts[i].count) {
			from -= b.parts[i].count;
			continue;
		}
		entry *all = entries(&b, i);
		uint8_t *text = ostro_mem(MOST * LINE), *at = text; // One call of resp a part, not four a line.
		for (; from < b.parts[i].count && limit > 0; from++, limit--)
			at = line(at, &all[from]);
		ostro_resp((ostro_bytes){text, (uint32_t)(at - text)});
		from = 0;
	}
	return 0;
}

OSTRO_FN(rank_count)
{
	board b = load();
	int64_t count = 0;
	for (uint32_t i = 0; i < b.used; i++)
		count += b.parts[i].count;
	ostro_resp_number(count);
	return 0;
}
