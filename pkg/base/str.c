#include "base/str.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_BYTES 120

/* Room for len more bytes and the NUL. */
static void reserve(struct strbuf *b, size_t len)
{
	size_t need = b->len + len + 1;

	if (need > b->cap)
		b->s = xgrow(b->s, &b->cap, need > FIRST_BYTES ? need : FIRST_BYTES, 1);
}

void strbuf_add(struct strbuf *b, const char *data, size_t len)
{
	reserve(b, len);
	if (len)
		memcpy(b->s + b->len, data, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
	reserve(b, 1);
	b->s[b->len++] = c;
	b->s[b->len] = '\0';
}

void strbuf_put_int(struct strbuf *b, int64_t v)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do {
		digits[--at] = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (v < 0)
		digits[--at] = '-';
	strbuf_add(b, digits + at, sizeof(digits) - at);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	reserve(b, 0);
	va_start(ap, fmt);
	n = vsnprintf(b->s + b->len, b->cap - b->len, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	if ((size_t)n >= b->cap - b->len) {
		reserve(b, (size_t)n);
		va_start(ap, fmt);
		vsnprintf(b->s + b->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
}

/* As a terminal counts; no character of ours is wide or combines. */
static size_t count_characters(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

void strbuf_put_wrapped(struct strbuf *b, const char *label, const char *text, size_t columns)
{
	size_t indent = count_characters(label, strlen(label)), column = indent;

	strbuf_puts(b, label);
	for (size_t len, n; *text; text += len, text += strspn(text, " ")) {
		len = strcspn(text, " ");
		n = count_characters(text, len);
		if (column > indent && column + 1 + n > columns) {
			strbuf_printf(b, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			strbuf_putc(b, ' ');
			column++;
		}
		strbuf_add(b, text, len);
		column += n;
	}
	strbuf_putc(b, '\n');
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->s ? b->s : "";
}

char *strbuf_steal(struct strbuf *b)
{
	char *s = b->s ? b->s : xstrdup("");

	*b = (struct strbuf)STRBUF_INIT;
	return s;
}

void strbuf_done(struct strbuf *b)
{
	free(b->s);
	*b = (struct strbuf)STRBUF_INIT;
}

int str_to_u64(const char *s, int base, uint64_t max, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (!isalnum((unsigned char)s[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, base);
	if (errno || *end || end == s || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

int str_to_int(const char *s, int *ret)
{
	bool negative = s[0] == '-';
	uint64_t v;

	if (str_to_u64(s + negative, 10, (uint64_t)INT_MAX + negative, &v) < 0)
		return -EINVAL;
	*ret = (int)(negative ? -(int64_t)v : (int64_t)v);
	return 0;
}

bool str_eq(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* FNV-1a */
#define HASH_BASE  UINT64_C(14695981039346656037)
#define HASH_PRIME UINT64_C(1099511628211)

static uint64_t hash_bytes(uint64_t h, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * HASH_PRIME;
	return h;
}

uint64_t str_hash(const char *s)
{
	return hash_bytes(HASH_BASE, (const uint8_t *)s, strlen(s));
}

uint64_t str_checksum(const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t sum = HASH_BASE, word;
	size_t i = 0;

	for (; i + sizeof(word) <= len; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum = (sum ^ le64toh(word)) * HASH_PRIME;
		sum ^= sum >> 32; /* a change high in a word changes low bits, too */
	}
	return hash_bytes(sum, bytes + i, len - i);
}

bool str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool str_ends(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

char *str_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

/* RFC 3629: no overlong forms, no surrogates. */
size_t str_utf8_sequence(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (n > len || s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

uint32_t str_utf8_code_point(const char *s, size_t n)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)s[0] & lead[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

/* Unicode 15: Cc, Zl, Zp and Cf but for those that are part of a script's letters (Arabic signs and
 * their like). */
static bool is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	      { 0x61c, 0x61c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < ARRAY_LEN(hidden) && hidden[i].first <= c; i++) {
		if (c <= hidden[i].last)
			return true;
	}
	return false;
}

size_t str_printable_sequence(const char *s, size_t len)
{
	size_t n = str_utf8_sequence(s, len);

	return n && !is_hidden(str_utf8_code_point(s, n)) ? n : 0;
}

/* Eight bytes at the front that are printable ASCII: most text that is shown is nothing else. */
static bool printable_word(const char *s)
{
	const uint64_t each = UINT64_C(0x0101010101010101), high = each << 7;
	uint64_t word;

	memcpy(&word, s, sizeof(word));
	/* No high bit, none after one is added (0x7f), and one in each when 0x60 is (0x20 and up).
	 */
	return !((word | (word + each)) & high) && ((word + 0x60 * each) & high) == high;
}

void str_printable(char *s, size_t len, const char *keep)
{
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		if (len - i >= 8 && printable_word(s + i)) {
			n = 8;
			continue;
		}
		n = str_printable_sequence(s + i, len - i);
		if (n || (s[i] && strchr(keep, s[i])))
			continue;
		n = str_utf8_sequence(s + i, len - i);
		memset(s + i, '?', n ? n : 1);
	}
}

bool str_utf8_valid(const char *s, size_t len)
{
	uint64_t word;

	for (size_t i = 0, n; i < len; i += n) {
		/* Eight ASCII bytes: most text that we check is nothing else. */
		word = UINT64_MAX;
		if (len - i >= sizeof(word))
			memcpy(&word, s + i, sizeof(word));
		n = word & UINT64_C(0x8080808080808080) ? str_utf8_sequence(s + i, len - i) : 8;
		if (!n)
			return false;
	}
	return true;
}

void str_utf8_trim(char *s)
{
	size_t len = strlen(s), lead = len;

	while (lead && len - lead < 4 && ((unsigned char)s[lead - 1] & 0xc0) == 0x80)
		lead--;
	if (lead && (unsigned char)s[lead - 1] >= 0xc0 &&
	    !str_utf8_sequence(s + lead - 1, len - lead + 1))
		s[lead - 1] = '\0';
}

const char *str_next_line(const char *s)
{
	const char *end = s ? strchr(s, '\n') : NULL;

	return end ? end + 1 : NULL;
}
