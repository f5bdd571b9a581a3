#include "hw/vpd.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* The first byte of a resource: a small one has its length in it, a large one in the next two. */
#define LARGE	   0x80
#define SMALL_KIND 0x78
#define SMALL_LEN  0x07
#define SMALL_END  0x78

enum { LARGE_NAME = 0x82, LARGE_READ_ONLY = 0x90 };

#define KEYWORD_HEAD 3 /* two letters and a length */

static const struct {
	const char *keyword;
	size_t value; /* in struct vpd */
} keywords[] = {
	{ "PN", offsetof(struct vpd, part) },
	{ "SN", offsetof(struct vpd, serial) },
	{ "V3", offsetof(struct vpd, board) },
	{ "VU", offsetof(struct vpd, vuid) },
};

static bool is_padding(uint8_t c)
{
	return c == ' ' || c == '\0';
}

/* The first fault is reported. */
#define WRONG(err, ...)                                                                            \
	do {                                                                                       \
		if ((err) && !(err)->code)                                                         \
			err_set(err, EINVAL, __VA_ARGS__);                                         \
	} while (0)

static void take_text(const char *what, struct bytes text, char *ret, struct err *err)
{
	while (text.len && is_padding(text.data[text.len - 1]))
		text.len--;
	while (text.len && is_padding(text.data[0])) {
		text.data++;
		text.len--;
	}
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < 0x20 || text.data[i] > 0x7e) {
			WRONG(err, "its %s is not printable ASCII", what);
			return;
		}
	}
	if (text.len >= VPD_VALUE_MAX) {
		WRONG(err, "its %s has %zu characters", what, text.len);
	} else if (!*ret && text.len) {
		memcpy(ret, text.data, text.len);
		ret[text.len] = '\0';
	}
}

static void take_keywords(struct bytes all, size_t start, struct vpd *vpd, struct err *err)
{
	for (size_t at = 0, len; at < all.len; at += KEYWORD_HEAD + len) {
		if (all.len - at < KEYWORD_HEAD) {
			WRONG(err, "the keyword at byte %zu is cut short", start + at);
			return;
		}
		len = all.data[at + 2];
		if (len > all.len - at - KEYWORD_HEAD) {
			WRONG(err, "the keyword at byte %zu claims %zu bytes, and %zu are there",
			      start + at, len, all.len - at - KEYWORD_HEAD);
			return;
		}
		for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
			if (!memcmp(keywords[i].keyword, all.data + at, 2))
				take_text(keywords[i].keyword,
					  (struct bytes) { all.data + at + KEYWORD_HEAD, len },
					  (char *)vpd + keywords[i].value, err);
		}
	}
}

void vpd_parse(const uint8_t *data, size_t n, struct vpd *ret, struct err *err)
{
	size_t head, len, there;

	*ret = (struct vpd) { .name = "" };
	for (size_t at = 0; at < n; at += head + len) {
		head = data[at] & LARGE ? 3 : 1;
		if (n - at < head) {
			WRONG(err, "the tag at byte %zu is cut short", at);
			return;
		}
		len = head == 3 ? data[at + 1] | (size_t)data[at + 2] << 8 : data[at] & SMALL_LEN;
		if (head == 1 && (data[at] & SMALL_KIND) == SMALL_END)
			return;
		there = n - at - head;
		if (len > there)
			WRONG(err, "the tag at byte %zu claims %zu bytes, and %zu are there", at,
			      len, there);
		else
			there = len;
		if (data[at] == LARGE_READ_ONLY)
			take_keywords((struct bytes) { data + at + head, there }, at + head, ret,
				      err);
		else if (data[at] == LARGE_NAME && there == len)
			take_text("identifier string", (struct bytes) { data + at + head, len },
				  ret->name, err);
		if (there < len)
			return;
	}
}

static void put_keyword(struct strbuf *out, const char *keyword, const char *value)
{
	if (!*value)
		return;
	strbuf_puts(out, keyword);
	strbuf_putc(out, (char)strlen(value));
	strbuf_puts(out, value);
}

void vpd_excerpt(const struct vpd *vpd, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf body = STRBUF_INIT;

	if (*vpd->name) {
		strbuf_putc(out, (char)LARGE_NAME);
		strbuf_putc(out, (char)(strlen(vpd->name) & 0xff));
		strbuf_putc(out, (char)(strlen(vpd->name) >> 8));
		strbuf_puts(out, vpd->name);
	}
	put_keyword(&body, "V3", vpd->board);
	put_keyword(&body, "VU", vpd->vuid);
	strbuf_putc(out, (char)LARGE_READ_ONLY);
	strbuf_putc(out, (char)(body.len & 0xff));
	strbuf_putc(out, (char)(body.len >> 8));
	strbuf_add(out, strbuf_str(&body), body.len);
	strbuf_putc(out, (char)SMALL_END);
}
