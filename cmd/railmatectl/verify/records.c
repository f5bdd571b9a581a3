/*
 * Lines → records. Anything may stand before a record: time stamps, the names of pods, mpirun's or
 * torchrun's rank, colours; and two records may stand in one line when processes share a stream. So
 * a record is looked for by "NCCL INFO " or "NCCL WARN ", and its host and process are read
 * backwards from there.
 */
#include <ctype.h>
#include <stdlib.h>
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
			/* "Mismatched NCCL version detected" */
			if (keys[i][5] == 'v' &&
			    (p - 1 + n == end || !isdigit((unsigned char)p[n - 1])))
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
	bool glued; /* to the text of another process: where the name begins is not known */
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
	/* TensorFlow's has no name: ":5202:5683 [0] NCCL INFO" */
	return o->host_len > 0 || p == begin || p[-1] == ' ' || p[-1] == '>';
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

/* Ray's additions behind a line, and the sides of frames. */
static const char *cut_end(const char *p, const char *end)
{
	static const char *const sides[] = { " ", "|", "\xe2\x94\x82", "\xe2\x94\x83",
					     "\xe2\x95\x91" };
	const char *ray = end > p && (end[-1] == ')' || end[-1] == ']')
				  ? memmem(p, (size_t)(end - p), " [repeated ", 11)
				  : NULL;

	end = ray ? ray : end;
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		size_t n = strlen(sides[i]);

		if ((size_t)(end - p) >= n && !memcmp(end - n, sides[i], n)) {
			end -= n;
			i = SIZE_MAX;
		}
	}
	return end;
}

/* Without colours and control characters, as much as fits. */
static void clean(char out[MAX_TEXT], const char *p, const char *end)
{
	size_t n = 0;

	end = cut_end(p, end);
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

/* Text that is no record, or stands before the first one. */
static void read_plain(struct verify *v, const char *line, size_t len)
{
	static const char *const words[] = { "Killed", "Aborted", "Terminated" };
	unsigned hints = 0;
	unsigned id = verify_phrases_match(&v->phrases, line, len, VOICE_PLAIN, &hints);

	v->writer = NULL;
	for (size_t i = 0; len < 16 && i < ARRAY_LEN(words); i++) {
		if (len >= strlen(words[i]) && !memcmp(line, words[i], strlen(words[i])))
			id = SIGN_SIGNAL;
	}
	if (id < SIGN_MAX || hints & HINT_WELL)
		clean(v->record, line, line + len);
	if (id < SIGN_MAX)
		verify_saw(v, id, v->record);
	if (hints & HINT_WELL)
		verify_ground(v, GROUND_END, v->record);
	if (hints & HINT_UCX)
		verify_ucx_line(v, line, len);
	if (hints || v->bench.columns)
		verify_bench_line(v, line, len, hints);
}

static void read_records(struct verify *v, const char *line, size_t len, bool whole)
{
	const char *end = line + len, *key, *next_key = NULL, *p, *next, *text_end;
	struct origin origin, next_origin = { 0 };
	char *text = v->record;
	size_t n;

	/* The keyword's first letter stands before the text searched for. */
	p = end - line < 5 ? NULL : next_record(line + 1, end, &key);
	origin = p ? find_origin(line, line, key) : next_origin;
	text_end = !p ? end : origin.host ? origin.host : key;
	v->text = line;
	v->text_len = len;
	if (whole || p)
		read_plain(v, line, (size_t)(text_end - line));
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
			n = strcspn(text, " ,");
			if (n < sizeof(v->version) && isdigit((unsigned char)*text) && r.whole)
				verify_version(v, text, n);
			continue;
		}
		if (origin.host && !origin.glued) {
			r.proc = verify_proc(v, origin.host, origin.host_len, origin.pid);
			r.cuda = (int64_t)origin.cuda;
			if (r.proc)
				r.proc->nccl = true;
		}
		v->writer = r.proc;
		v->writer_cuda = r.cuda;
		verify_record(v, &r);
	}
	v->text = NULL;
	v->writer = NULL;
}

/* {"log":"host:1:2 [0] NCCL INFO …\n","stream":"stdout"}: the value, without its escapes. */
static size_t unwrap(const char *line, size_t len, char *out)
{
	static const char *const keys[] = { "\"log\":", "\"message\":", "\"msg\":",
					    "\"textPayload\":", "\"line\":" };
	const char *p = NULL, *end = line + len;
	size_t n = 0;

	for (size_t i = 0; !p && i < ARRAY_LEN(keys); i++) {
		p = memmem(line, len, keys[i], strlen(keys[i]));
		p = p ? p + strlen(keys[i]) : NULL;
	}
	while (p && p < end && *p == ' ')
		p++;
	if (!p || p == end || *p != '"')
		return 0;
	for (p++; p < end && *p != '"'; p++) {
		if (*p != '\\' || ++p == end) {
			out[n++] = *p;
		} else if (*p == 'u' && end - p > 4) { /* "\u001b", "\u003c" */
			char hex[5] = { p[1], p[2], p[3], p[4] };
			unsigned long c = strtoul(hex, NULL, 16);

			out[n++] = (char)(c < 128 ? c : '?');
			p += 4;
		} else {
			out[n++] = *p == 'n' || *p == 'r' ? '\r' : *p == 't' ? '\t' : *p;
		}
	}
	return n;
}

/* UTF-16 of PowerShell: without the bytes that are 0 it is ASCII. */
static size_t without_zeros(const char *line, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i])
			out[n++] = line[i];
	}
	return n;
}

void verify_line(struct verify *v, const char *line, size_t len, bool whole)
{
	const char *end, *part;
	size_t n = memchr(line, '\0', len)   ? without_zeros(line, len, v->value)
		   : len > 8 && *line == '{' ? unwrap(line, len, v->value)
					     : 0;

	if (n) {
		line = v->value;
		len = n;
	}
	/* A progress bar ends its lines with carriage returns. */
	for (end = line + len; line < end; line = part + 1) {
		part = memchr(line, '\r', (size_t)(end - line));
		if (!part)
			part = end;
		if (part > line)
			read_records(v, line, (size_t)(part - line), whole || part < end);
	}
}
