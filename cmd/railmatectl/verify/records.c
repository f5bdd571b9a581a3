/*
 * Lines → records. Anything may stand before a record: time stamps, the names of pods, mpirun's or
 * torchrun's rank, colours; and two records may stand in one line when processes share a stream. So
 * a record is looked for by "NCCL INFO " or "NCCL WARN ", and its host and process are read
 * backwards from there.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "verify/verify-internal.h"

/*
 * --- UCX about its transports, as NIXL and its users (vLLM, SGLang, Dynamo) have it ---
 *
 * The tables of UCX_PROTO_INFO=y, and "inter-node cfg#2 rma(rc_mlx5/mlx5_0:1)" of
 * UCX_LOG_LEVEL=info. A heading names the two ends and the memory, each row of a table the
 * transports of a range of sizes.
 */

static bool has(const char *line, size_t len, const char *word)
{
	return memmem(line, len, word, strlen(word));
}

static bool has_any(const char *line, size_t len, const char *const *words)
{
	for (; *words; words++) {
		if (has(line, len, *words))
			return true;
	}
	return false;
}

/* "[1724760000.123456] [host:22386:0] …" */
static struct proc *process_of(struct verify *v, const char *line, size_t len)
{
	const char *end = line + len;

	for (const char *p = line; (p = memchr(p, '[', (size_t)(end - p)));) {
		const char *host = ++p, *colon;
		uint64_t pid = 0;

		while (p < end && (isalnum((unsigned char)*p) || (*p && strchr("-._", *p))))
			p++;
		if (p == end || *p != ':')
			continue;
		for (colon = p++; p < end && isdigit((unsigned char)*p); p++)
			pid = pid * 10 + (uint64_t)(*p - '0');
		if (p > colon + 1 && p < end && (*p == ':' || *p == ' '))
			return verify_proc(v, host, (size_t)(colon - host), pid);
	}
	return verify_proc(v, "ucx", 3, 0);
}

static void read_ucx(struct verify *v, const char *line, size_t len)
{
	static const char *const rdma[] = { "rc_mlx5/",	 "rc_verbs/", "rc_gda/",   "dc_mlx5/",
					    "ud_mlx5/",	 "ud_verbs/", "gga_mlx5/", "srd/",
					    "type=rdma", NULL };
	static const char *const within[] = { "intra-node", "self cfg#", "sysv/", "posix/",
					      "cma/",	    "xpmem/",	 NULL };
	static const char *const gpu[] = { "cuda", "rocm", NULL };
	bool heading = has(line, len, "cfg#") || has(line, len, "ep_cfg[");
	struct proc *p = process_of(v, line, len);
	char text[MAX_PROOF];
	size_t n = len < sizeof(text) - 1 ? len : sizeof(text) - 1;

	if (!p)
		return;
	v->writer = p;
	v->writer_cuda = -1;
	v->ucx_lines++;
	memcpy(text, line, n);
	text[n] = '\0';
	/* Mooncake, which has no other transport then. */
	p->ucx_between |= has(line, len, "installTransport");
	if (heading) {
		p->ucx_between = !has_any(line, len, within);
		p->ucx_gpu = has_any(line, len, gpu);
	}
	if (!p->ucx_between)
		return;
	/* Each kind of operation has its own: "rma(tcp/eth0) am(rc_mlx5/mlx5_0:1)". */
	for (const char *at = line, *end = line + len, *next; at < end; at = next) {
		const char *close = memchr(at, ')', (size_t)(end - at));

		next = close && heading ? close + 1 : end;
		if (!has_any(at, (size_t)(next - at), rdma) && has(at, (size_t)(next - at), "tcp/"))
			verify_saw(v, SIGN_UCX_TCP, text);
	}
	if (!has_any(line, len, rdma))
		return;
	v->ucx_between++;
	verify_ground(v, GROUND_UCX, text);
	if (!heading && p->ucx_gpu && has(line, len, "..inf") && !has(line, len, "zero-copy"))
		verify_saw(v, SIGN_UCX_STAGED, text);
}

/* --- NCCL's records --- */

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
		read_ucx(v, line, len);
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

static void read_line(struct verify *v, const char *line, size_t len, bool whole)
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

/* --- bytes → lines: a line that is whole in the caller's bytes is not copied --- */

struct verify *verify_new(void)
{
	struct verify *v = xcalloc(1, sizeof(*v));

	v->arena = arena_new(4096);
	v->partial = xcalloc(VERIFY_MAX_LINE, 1);
	verify_phrases_fill(&v->phrases);
	for (unsigned id = 0; id < SIGN_MAX; id++)
		v->levels[id] = (uint8_t)verify_sign_of(id)->level;
	return v;
}

void verify_freep(struct verify **verify)
{
	struct verify *v = *verify;

	if (!v)
		return;
	for (size_t i = 0; i < v->n_procs; i++) {
		freep(&v->procs[i]->hcas);
		freep(&v->procs[i]->wanted);
		freep(&v->procs[i]);
	}
	for (size_t i = 0; i < v->n_gpus; i++)
		freep(&v->gpus[i]);
	freep(&v->partial);
	arena_free(v->arena);
	freep(&v);
}

void verify_begin(struct verify *v, const char *name)
{
	v->source = arena_strdup(v->arena, name);
	v->line = 0;
	v->partial_len = 0;
}

static void end_line(struct verify *v, const char *line, size_t len, bool whole)
{
	v->line++;
	v->lines++;
	read_line(v, line, len < VERIFY_MAX_LINE ? len : VERIFY_MAX_LINE, whole);
}

static void keep_partial(struct verify *v, const char *data, size_t len)
{
	size_t room = VERIFY_MAX_LINE - v->partial_len;
	size_t n = len < room ? len : room;

	memcpy(v->partial + v->partial_len, data, n);
	v->partial_len += n;
}

void verify_feed(struct verify *v, const char *data, size_t len)
{
	const char *end = data + len, *newline;

	v->bytes += len;
	for (; data < end; data = newline + 1) {
		newline = memchr(data, '\n', (size_t)(end - data));
		if (!newline) {
			keep_partial(v, data, (size_t)(end - data));
			return;
		}
		if (!v->partial_len) {
			end_line(v, data, (size_t)(newline - data), true);
			continue;
		}
		keep_partial(v, data, (size_t)(newline - data));
		end_line(v, v->partial, v->partial_len, true);
		v->partial_len = 0;
	}
}

void verify_end(struct verify *v)
{
	if (v->partial_len)
		end_line(v, v->partial, v->partial_len, false);
	v->partial_len = 0;
	verify_close_table(v);
}
