/* Strings: a growing buffer, strict number parsing, UTF-8. */
#ifndef RAILMATE_BASE_STR_H
#define RAILMATE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing, always NUL-terminated buffer. Zero-initialise with STRBUF_INIT, end with
 * strbuf_done(). */
struct strbuf {
	char *s; /* never NULL after the first append; strbuf_str() is always safe */
	size_t len, cap;
};
#define STRBUF_INIT                                                                                \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}
#define _cleanup_strbuf_ __attribute__((cleanup(strbuf_done)))

void strbuf_add(struct strbuf *b, const char *data, size_t len);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_put_int(struct strbuf *b, int64_t v); /* decimal */
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Label and text, broken between words where a line would have more characters than columns; every
 * line but the first begins below the text's first word. Ends with a line feed. */
void strbuf_put_wrapped(struct strbuf *b, const char *label, const char *text, size_t columns);
const char *strbuf_str(const struct strbuf *b); /* borrowed; "" while empty */
char *strbuf_steal(struct strbuf *b); /* heap string for the caller; the buffer is empty after */
void strbuf_done(struct strbuf *b);

/* The whole string is a number of this base, at most max; 0 or -EINVAL. No sign, blank or suffix;
 * "0x" may lead base 16. */
int str_to_u64(const char *s, int base, uint64_t max, uint64_t *ret);
/* The whole string is a decimal int, which may be negative; 0 or -EINVAL. */
int str_to_int(const char *s, int *ret);

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
/* FNV-1a: the same everywhere and for ever; nothing that resists an attacker */
uint64_t str_hash(const char *s);
/* FNV-1a with eight bytes a step: every step is one to one, so that no change of a single byte goes
 * unseen. */
uint64_t str_checksum(const void *data, size_t len);
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *end);
char *str_trim(char *s); /* cuts white space at both ends, in place */
/* Bytes of the well-formed UTF-8 sequence that s begins with; 0: it begins with none. len > 0. */
size_t str_utf8_sequence(const char *s, size_t len);
uint32_t str_utf8_code_point(const char *s, size_t n); /* of a sequence of n bytes */
bool str_utf8_valid(const char *s, size_t len);
/* str_utf8_sequence(), if a terminal or a log may be shown the character: 0 also for controls (C0,
 * DEL, C1) and for characters that are invisible or turn the order of the text around
 * (bidirectional and other format characters, line separators). */
size_t str_printable_sequence(const char *s, size_t len);
/* In place: '?' for each byte that may not be shown. keep: the controls that stay, "" or "\n\t".
 * For every name that comes from outside (sysfs, pods, files, the network), where it is printed. */
void str_printable(char *s, size_t len, const char *keep);
/* Cuts an incomplete sequence at the end of s, in place: a full fixed buffer leaves one behind. */
void str_utf8_trim(char *s);

/* The text behind the next line feed; NULL: there is none, or s is NULL. */
const char *str_next_line(const char *s);

#endif
