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

static int take_text(const char *what, struct bytes text, char *ret, struct err *err)
{
	while (text.len && is_padding(text.data[text.len - 1]))
		text.len--;
	while (text.len && is_padding(text.data[0])) {
		text.data++;
		text.len--;
	}
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < 0x20 || text.data[i] > 0x7e)
			return err_set(err, EINVAL, "its %s is no printable ASCII", what);
	}
	if (text.len >= VPD_VALUE_MAX)
		return err_set(err, EINVAL, "its %s has %zu characters", what, text.len);
	if (!*ret && text.len) {
		memcpy(ret, text.data, text.len);
		ret[text.len] = '\0';
	}
	return 0;
}

static int take_keywords(struct bytes all, size_t start, struct vpd *vpd, struct err *err)
{
	for (size_t at = 0, len; at < all.len; at += KEYWORD_HEAD + len) {
		if (all.len - at < KEYWORD_HEAD)
			return err_set(err, EINVAL, "the keyword at byte %zu is cut short",
				       start + at);
		len = all.data[at + 2];
		if (len > all.len - at - KEYWORD_HEAD)
			return err_set(
				err, EINVAL,
				"the keyword at byte %zu claims %zu bytes, and %zu are there",
				start + at, len, all.len - at - KEYWORD_HEAD);
		for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
			if (!memcmp(keywords[i].keyword, all.data + at, 2) &&
			    take_text(keywords[i].keyword,
				      (struct bytes) { all.data + at + KEYWORD_HEAD, len },
				      (char *)vpd + keywords[i].value, err) < 0)
				return -EINVAL;
		}
	}
	return 0;
}

int vpd_parse(const uint8_t *data, size_t n, struct vpd *ret, struct err *err)
{
	struct vpd vpd = { .name = "" };
	size_t at = 0, head, len;
	struct bytes body;
	int r = 0;

	for (; at < n; at += head + len) {
		head = data[at] & LARGE ? 3 : 1;
		if (n - at < head)
			return err_set(err, EINVAL, "the tag at byte %zu is cut short", at);
		len = head == 3 ? data[at + 1] | (size_t)data[at + 2] << 8 : data[at] & SMALL_LEN;
		if (head == 1 && (data[at] & SMALL_KIND) == SMALL_END) {
			*ret = vpd;
			return 0;
		}
		if (len > n - at - head)
			return err_set(err, EINVAL,
				       "the tag at byte %zu claims %zu bytes, and %zu are there",
				       at, len, n - at - head);
		body = (struct bytes) { data + at + head, len };
		if (data[at] == LARGE_NAME)
			r = take_text("identifier string", body, vpd.name, err);
		else if (data[at] == LARGE_READ_ONLY)
			r = take_keywords(body, at + head, &vpd, err);
		if (r < 0)
			return -EINVAL;
	}
	*ret = vpd;
	return 0;
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

	put_keyword(&body, "V3", vpd->board);
	put_keyword(&body, "VU", vpd->vuid);
	strbuf_putc(out, (char)LARGE_READ_ONLY);
	strbuf_putc(out, (char)(body.len & 0xff));
	strbuf_putc(out, (char)(body.len >> 8));
	strbuf_add(out, strbuf_str(&body), body.len);
	strbuf_putc(out, (char)SMALL_END);
}
