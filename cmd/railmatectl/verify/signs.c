/* The catalogue, and its words as one index, by which a line is looked through once. */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "verify/signs-internal.h"

#define SIGN(name, id, level, voice, follows, words, what, cause, fix)                             \
	{ id, LEVEL_##level, VOICE_##voice, words, cause, fix, follows, what },
static const struct sign signs[SIGN_MAX] = {
#include "verify/signs.def"
};
#undef SIGN

const struct sign *verify_sign_of(unsigned id)
{
	return &signs[id];
}

const char *verify_level_name(enum level level)
{
	static const char *const names[] = {
		[LEVEL_NOTE] = "note", [LEVEL_NOGDR] = "no GDR",	 [LEVEL_WARN] = "WARN",
		[LEVEL_FAIL] = "FAIL", [LEVEL_UNKNOWN] = "INCONCLUSIVE",
	};

	return names[level];
}

/* --- the index: phrases by the four bytes with which they begin --- */

static uint32_t gram_at(const char *p)
{
	uint32_t gram;

	memcpy(&gram, p, sizeof(gram));
	return gram;
}

static uint32_t hash_gram(uint32_t gram)
{
	return gram * 0x9e3779b1u >> 16;
}

static size_t phrase_len(const char *text)
{
	return strcspn(text, "&#|");
}

static void add_phrase(struct phrases *p, const char *text, unsigned sign, enum voice voice)
{
	struct phrase *row = &p->rows[p->n];
	uint32_t hash;
	uint16_t *slot;

	if (*text == '!') {
		voice = VOICE_WARN;
		text++;
	}
	*row = (struct phrase) { .text = text,
				 .gram = gram_at(text),
				 .len = (uint16_t)phrase_len(text),
				 .sign = (uint16_t)sign,
				 .voice = (uint8_t)voice };
	hash = hash_gram(row->gram);
	p->bits[hash / 64] |= UINT64_C(1) << hash % 64;
	slot = &p->slots[hash % SLOTS];
	row->next = *slot;
	*slot = ++p->n;
}

static void add_words(struct phrases *p, const char *words, unsigned sign, enum voice voice)
{
	for (const char *at = words; at && p->n < MAX_PHRASES; at = strchr(at, '|')) {
		at += *at == '|';
		add_phrase(p, at, sign, voice);
	}
}

/* A hint is a sign that is no finding: its bit, behind all signs. */
void verify_phrases_fill(struct phrases *p)
{
	static const char *const hints[] = {
		"usbw|usBW",							/* HINT_HEADING */
		"_perf|COMMS-RES|ctional BW",					/* HINT_NAME */
		"BW average[| Device    ",					/* HINT_LINK */
		"Out of bounds|Avg bus bandw",					/* HINT_END */
		"nThread|Rank &Pid",						/* HINT_START */
		"-node cfg|self cfg|ep_cfg[|..inf|installTransport, type=rdma", /* HINT_UCX */
		"Avg bus bandw|test concluded|Out of bounds values&OK|JobState=COMPLETED|Reason:&Completed",
	};

	for (unsigned id = 0; id < SIGN_MAX; id++)
		add_words(p, verify_sign_of(id)->words, id, verify_sign_of(id)->voice);
	for (unsigned i = 0; i < ARRAY_LEN(hints); i++)
		add_words(p, hints[i], SIGN_MAX + i, VOICE_PLAIN);
}

/* "Exit Code:    137", "exitcode: -9": a number follows, and is not 0. */
static bool number_follows(const char *p, const char *end)
{
	while (p < end && (isspace((unsigned char)*p) || strchr(":=\"'", *p)))
		p++;
	p += p < end && *p == '-';
	while (p < end && *p == '0')
		p++;
	return p < end && isdigit((unsigned char)*p);
}

/* The first part stands at `at`, the others anywhere in the text. */
static bool meets(const struct phrase *row, const char *text, size_t len, const char *at)
{
	const char *end = text + len, *part = row->text + row->len;

	if ((size_t)(end - at) < row->len || memcmp(at, row->text, row->len) != 0)
		return false;
	if (*part == '#' && !number_follows(at + row->len, end))
		return false;
	while (*part == '&') {
		size_t n = phrase_len(++part);

		if (!memmem(text, len, part, n))
			return false;
		part += n;
	}
	return true;
}

unsigned verify_phrases_match(const struct phrases *p, const char *text, size_t len,
			      enum voice voice, unsigned *hints)
{
	unsigned best = SIGN_MAX;

	for (size_t i = 0; i + 4 <= len; i++) {
		uint32_t gram = gram_at(text + i), hash = hash_gram(gram);

		if (!(p->bits[hash / 64] >> hash % 64 & 1))
			continue;
		for (unsigned n = p->slots[hash % SLOTS]; n; n = p->rows[n - 1].next) {
			const struct phrase *row = &p->rows[n - 1];

			if (row->gram != gram || !(row->voice & voice) ||
			    (row->sign >= best && row->sign < SIGN_MAX) ||
			    !meets(row, text, len, text + i))
				continue;
			if (row->sign < SIGN_MAX)
				best = row->sign;
			else
				*hints |= 1u << (row->sign - SIGN_MAX);
		}
	}
	return best;
}
