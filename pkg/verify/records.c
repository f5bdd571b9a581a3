/*
 * Lines → records. Anything may stand before a record: time stamps, the names of pods, mpirun's or
 * torchrun's rank, colours; and two records may stand in one line when processes share a stream. So
 * a record is looked for by "NCCL INFO " or "NCCL WARN ", and its host and process are read
 * backwards from there.
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "verify/verify-internal.h"

/* Where the next record's text may begin: after the keyword. NULL: none. *ret_key: the keyword. */
static const char *next_record(const char *p, const char *end, const char **ret_key)
{
	static const char *const keys[] = { "NCCL INFO ", "NCCL WARN ", "NCCL version ",
					    "RCCL version : ", "RCCL version " };

	while ((p = memmem(p, (size_t)(end - p), "CCL ", 4))) {
		for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
			size_t n = strlen(keys[i]);

			if ((size_t)(end - p) + 1 < n || memcmp(p - 1, keys[i], n) != 0)
				continue;
			*ret_key = p - 1;
			return p - 1 + n;
		}
		p += 4;
	}
	return NULL;
}

/* A number that ends before `p`, not before `begin`: its first digit, or NULL. */
static const char *digits_before(const char *begin, const char *p, uint64_t *ret)
{
	const char *first = p;
	uint64_t value = 0;

	while (first > begin && isdigit((unsigned char)first[-1]))
		first--;
	if (first == p || p - first > 18)
		return NULL;
	for (const char *d = first; d < p; d++)
		value = value * 10 + (uint64_t)(*d - '0');
	*ret = value;
	return first;
}

struct origin {
	const char *host; /* NULL: none */
	size_t host_len;
	uint64_t pid, cuda;
	bool glued; /* to what another process wrote: where the name begins is not known */
};

/* "host:pid:tid [dev] " with this '['. */
static bool read_origin(const char *begin, const char *bracket, const char *end, struct origin *o)
{
	const char *p = bracket, *d = bracket + 1, *host_end;
	uint64_t tid;

	while (d < end && isdigit((unsigned char)*d))
		d++;
	if (d == end || *d != ']' || !digits_before(bracket + 1, d, &o->cuda) || o->cuda > 255)
		return false;
	if (p == begin || *--p != ' ')
		return false;
	p = digits_before(begin, p, &tid);
	if (!p || p == begin || *--p != ':')
		return false;
	p = digits_before(begin, p, &o->pid);
	if (!p || p == begin || *--p != ':')
		return false;
	host_end = p;
	while (p > begin && (isalnum((unsigned char)p[-1]) || (p[-1] && strchr("-._", p[-1]))))
		p--;
	o->host = p;
	o->host_len = (size_t)(host_end - p);
	return o->host_len > 0;
}

/* The nearest origin before the keyword: a WARN has file and line between them. */
static struct origin find_origin(const char *line, const char *begin, const char *key)
{
	struct origin o = { 0 };

	for (const char *p = key; p > begin; p--) {
		if (p[-1] != '[' || !read_origin(begin, p - 1, key, &o))
			continue;
		o.glued = begin != line && o.host > begin && o.host[-1] != ' ';
		return o;
	}
	return (struct origin) { 0 };
}

/* Without colours and control characters, as much as fits. */
static void clean(char out[MAX_TEXT], const char *p, const char *end)
{
	size_t n = 0;

	while (p < end && n < MAX_TEXT - 1) {
		unsigned char c = (unsigned char)*p++;

		if (c == 0x1b && p < end && *p == '[') {
			while (p < end && !isalpha((unsigned char)*p))
				p++;
			p += p < end;
			continue;
		}
		out[n++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	while (n && (out[n - 1] == ' ' || out[n - 1] == '?'))
		n--;
	out[n] = '\0';
}

void verify_line(struct verify *v, const char *line, size_t len, bool whole)
{
	const char *end = line + len, *key, *next_key = NULL, *p, *next, *text_end;
	struct origin origin, next_origin = { 0 };
	char text[MAX_TEXT];
	size_t n;

	if (len && end[-1] == '\r')
		end--;
	/* The keyword's first letter stands before what is searched for. */
	p = end - line < 5 ? NULL : next_record(line + 1, end, &key);
	if (!p && whole)
		verify_bench_line(v, line, (size_t)(end - line));
	origin = p ? find_origin(line, line, key) : next_origin;
	for (; p; p = next, key = next_key, origin = next_origin) {
		struct record r = { .cuda = -1, .warn = key[5] == 'W', .text = text };

		next = next_record(p, end, &next_key);
		if (next)
			next_origin = find_origin(line, p, next_key);
		text_end = !next ? end : next_origin.host ? next_origin.host : next_key;
		r.whole = whole || next;
		clean(text, p, text_end);
		v->records++;
		if (key[5] == 'v') {
			n = strcspn(text, " ");
			if (!v->version[0] && n < sizeof(v->version) &&
			    isdigit((unsigned char)*text))
				memcpy(v->version, text, n);
			continue;
		}
		if (origin.host && !origin.glued) {
			r.proc = verify_proc(v, origin.host, origin.host_len, origin.pid);
			r.cuda = (int64_t)origin.cuda;
		}
		verify_record(v, &r);
	}
}
