/*
 * Made-up values for what names a machine or its owner. The n-th different original of a kind
 * becomes the n-th made-up value, so what was equal stays equal, and the order of a capture makes
 * the result repeatable.
 */
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree-internal.h"

struct replaced {
	enum scrub_kind kind;
	char *original;
	int number;
};

struct scrubber {
	char *host_name; /* "" unknown */
	void *seen;	 /* tsearch() tree of struct replaced */
	int count[SCRUB_CONFIG + 1];
};

struct scrubber *scrubber_new(const char *host_name)
{
	struct scrubber *s = xcalloc(1, sizeof(*s));

	s->host_name = xstrdup(host_name);
	return s;
}

static void replaced_free(void *node)
{
	struct replaced *r = node;

	free(r->original);
	free(r);
}

void scrubber_free(struct scrubber *s)
{
	if (!s)
		return;
	tdestroy(s->seen, replaced_free);
	free(s->host_name);
	free(s);
}

static int by_original(const void *a, const void *b)
{
	const struct replaced *ra = a, *rb = b;

	return ra->kind != rb->kind ? (int)ra->kind - (int)rb->kind
				    : strcmp(ra->original, rb->original);
}

static int number_of(struct scrubber *s, enum scrub_kind kind, const char *original, size_t len)
{
	struct replaced *key = xcalloc(1, sizeof(*key)), *found;

	*key = (struct replaced) { kind, xasprintf("%.*s", (int)len, original), 0 };
	found = *(struct replaced **)tsearch(key, &s->seen, by_original);
	if (found != key) {
		replaced_free(key);
		return found->number;
	}
	key->number = ++s->count[kind];
	return key->number;
}

/* Only zeros and separators: an empty slot, which identifies no machine. */
static bool is_blank(const char *text)
{
	return !text[strspn(text, "0:. \t\n")];
}

static void put(struct strbuf *value, const char *text)
{
	bool newline = value->len && value->s[value->len - 1] == '\n';

	value->len = 0;
	strbuf_puts(value, text);
	if (newline)
		strbuf_putc(value, '\n');
}

static void scrub_number(struct scrubber *s, enum scrub_kind kind, const char *prefix,
			 struct strbuf *value)
{
	char text[64];
	int n;

	if (is_blank(strbuf_str(value)))
		return;
	n = number_of(s, kind, value->s, strcspn(value->s, "\n"));
	if (kind == SCRUB_MAC)
		snprintf(text, sizeof(text), "02:00:00:%02x:%02x:%02x", n >> 16 & 255, n >> 8 & 255,
			 n & 255);
	else
		snprintf(text, sizeof(text), "%s%04x:%04x", prefix, n >> 16 & 0xffff, n & 0xffff);
	put(value, text);
}

/* Link-local and IPv4-mapped prefixes say what kind of GID it is and stay; any other is replaced as
 * a whole.
 */
static void scrub_gid(struct scrubber *s, struct strbuf *value)
{
	static const char *const prefixes[][2] = {
		{ "fe80:0000:0000:0000:", "fe80:0000:0000:0000:0200:0000:" },
		{ "0000:0000:0000:0000:0000:ffff:", "0000:0000:0000:0000:0000:ffff:" },
		{ "", "fd00:0000:0000:0000:0000:0000:" },
	};
	size_t i = 0;

	while (!str_starts(strbuf_str(value), prefixes[i][0]))
		i++;
	scrub_number(s, SCRUB_GID, prefixes[i][1], value);
}

/* Calls fn for every line of value, which it appends to a new text. */
static void each_line(struct scrubber *s, struct strbuf *value,
		      void (*fn)(struct scrubber *s, const char *line, size_t len,
				 struct strbuf *out))
{
	struct strbuf out = STRBUF_INIT;

	for (size_t at = 0; at < value->len;) {
		const char *end = memchr(value->s + at, '\n', value->len - at);
		size_t n = end ? (size_t)(end - value->s) - at : value->len - at;

		fn(s, value->s + at, n, &out);
		at += n + 1;
	}
	strbuf_done(value);
	*value = out;
}

static void nvidia_line(struct scrubber *s, const char *line, size_t len, struct strbuf *out)
{
	const char *uuid = memmem(line, len, "GPU-", 4);

	if (str_starts(line, "GPU UUID") && uuid && uuid[4] != '?') {
		size_t before = (size_t)(uuid - line);

		strbuf_add(out, line, before);
		strbuf_printf(out, "GPU-00000000-0000-0000-0000-%012x",
			      (unsigned)number_of(s, SCRUB_NVIDIA, uuid, len - before));
	} else {
		strbuf_add(out, line, len);
	}
	strbuf_putc(out, '\n');
}

/* "EnableMSI: 1"; the others hold text: paths, UUIDs of GPUs that are left out. */
static void param_line(struct scrubber *s, const char *line, size_t len, struct strbuf *out)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : len;

	(void)s;
	if (len < name + 3 || line[name + 2] < '0' || line[name + 2] > '9')
		return;
	strbuf_add(out, line, len);
	strbuf_putc(out, '\n');
}

/* Header and default routes, the latter without their gateway. */
static void route_line(struct scrubber *s, const char *line, size_t len, struct strbuf *out)
{
	_cleanup_free_ char *text = xasprintf("%.*s", (int)len, line);
	char name[64], gateway[16], rest[256] = "";

	(void)s;
	if (str_starts(text, "Iface"))
		strbuf_printf(out, "%s\n", text);
	else if (sscanf(text, "%63s 00000000 %15s %255[^\n]", name, gateway, rest) == 3)
		strbuf_printf(out, "%s\t00000000\t00000000\t%s\n", name, rest);
}

#define EXT_CAPS   0x100
#define CAP_SERIAL 0x0003

/* Two dwords behind the header of the capability. As often as fit: the list may be a ring. */
static void scrub_config(struct strbuf *value)
{
	size_t at = EXT_CAPS;

	for (int i = 0; i < 480 && at >= EXT_CAPS && at + 4 <= value->len; i++) {
		const unsigned char *p = (const unsigned char *)value->s + at;
		uint32_t head =
			p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;

		if ((head & 0xffff) == CAP_SERIAL) {
			for (size_t k = at + 4; k < at + 12 && k < value->len; k++)
				value->s[k] = 0;
		}
		at = head >> 20 & ~3u;
	}
}

/* Addresses of disks, names of images and passwords stand beside what matters. */
static void scrub_cmdline(struct strbuf *value)
{
	static const char *const kept[] = { "pci=",
					    "iommu=",
					    "iommu.",
					    "intel_iommu=",
					    "amd_iommu=",
					    "pcie_",
					    "numa_balancing=",
					    "hugepage",
					    "default_hugepagesz=",
					    "transparent_hugepage=" };
	_cleanup_free_ char *words = strbuf_steal(value);
	char *save, *word;

	for (word = strtok_r(words, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
			if (str_starts(word, kept[i])) {
				strbuf_printf(value, "%s%s", value->len ? " " : "", word);
				break;
			}
		}
	}
	strbuf_putc(value, '\n');
}

/* The host's name, wherever else it stands. */
static void scrub_host_name(const struct scrubber *s, struct strbuf *value)
{
	struct strbuf out = STRBUF_INIT;
	size_t n = strlen(s->host_name);
	const char *at = strbuf_str(value), *hit;

	if (n < 3 || strlen(at) != value->len || !strstr(at, s->host_name))
		return;
	for (; (hit = strstr(at, s->host_name)); at = hit + n) {
		strbuf_add(&out, at, (size_t)(hit - at));
		strbuf_puts(&out, "host");
	}
	strbuf_puts(&out, at);
	strbuf_done(value);
	*value = out;
}

void scrubber_apply(struct scrubber *s, enum scrub_kind kind, struct strbuf *value)
{
	switch (kind) {
	case SCRUB_MAC:
		scrub_number(s, kind, "", value);
		break;
	case SCRUB_GUID:
		scrub_number(s, kind, "0200:0000:", value);
		break;
	case SCRUB_GID:
		scrub_gid(s, value);
		break;
	case SCRUB_TEXT:
		if (!is_blank(strbuf_str(value)))
			put(value, "scrubbed");
		break;
	case SCRUB_NVIDIA:
		each_line(s, value, nvidia_line);
		break;
	case SCRUB_ROUTE:
		each_line(s, value, route_line);
		break;
	case SCRUB_CMDLINE:
		scrub_cmdline(value);
		break;
	case SCRUB_PARAMS:
		each_line(s, value, param_line);
		break;
	case SCRUB_CONFIG:
		scrub_config(value);
		break;
	default:
		scrub_host_name(s, value);
		break;
	}
}
