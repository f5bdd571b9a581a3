/*
 * UCX about its transports, as NIXL and its users (vLLM, SGLang, Dynamo) have it: the tables of
 * UCX_PROTO_INFO=y, and "inter-node cfg#2 rma(rc_mlx5/mlx5_0:1)" of UCX_LOG_LEVEL=info. A heading
 * names the two ends and the memory, each row of a table the transports of a range of sizes.
 */
#include <ctype.h>
#include <string.h>

#include "verify/verify-internal.h"

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

void verify_ucx_line(struct verify *v, const char *line, size_t len)
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
