/* The side of this container: its devices, its ends of connections, its hello. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "gpu.h"
#include "peer-internal.h"
#include "report.h"
#include "sysroot/sysroot.h"

int peer_open(struct peer_side *s)
{
	struct err err = { 0 };

	if (exchange_token_check(s->options->token, &err) < 0) {
		report_finding(s->report, OUTCOME_NOT_MEASURED, "token", NULL, "%s", err.msg);
		return -EINVAL;
	}
	if (sysroot_open(s->options->root ? s->options->root : "/", &s->root, &err) < 0) {
		report_finding(s->report, OUTCOME_NOT_MEASURED, "no-map", NULL, "%s", err.msg);
		return -err.code;
	}
	return 0;
}

void peer_open_devices(struct peer_side *s)
{
	s->devices = arena_array(s->report->arena, s->told->n_vfs + 1, sizeof(*s->devices));
	s->gpus = arena_array(s->report->arena, s->told->n_vfs + 1, sizeof(*s->gpus));
	for (size_t i = 0; i < s->told->n_vfs && i < EXCHANGE_VFS_MAX; i++) {
		if (s->told->vfs[i].hca &&
		    wire_open(&s->told->vfs[i], s->report, &s->devices[i]) < 0)
			s->devices[i] = NULL;
	}
}

void peer_close_devices(struct peer_side *s)
{
	for (size_t i = 0; s->devices && i < s->told->n_vfs; i++) {
		wire_close(s->devices[i]);
		gpu_close(s->gpus[i].gpu);
	}
	s->devices = NULL;
}

ssize_t peer_find_vf(const struct peer_side *s, const char *hca)
{
	for (size_t i = 0; i < s->told->n_vfs; i++) {
		if (s->devices[i] && str_eq(s->told->vfs[i].hca, hca))
			return (ssize_t)i;
	}
	return -1;
}

static unsigned prefix_of(const struct sockaddr_in *mask)
{
	return (unsigned)__builtin_popcount(mask->sin_addr.s_addr);
}

/* Of an IPv4 address its interface has the length of the prefix; an IPv6 address and an InfiniBand
 * GID have 64 bits of it. NULL: not known. */
const char *peer_subnet_of(const struct told_vf *vf, struct arena *a)
{
	const char *ret = NULL;
	struct ifaddrs *all = NULL;
	struct in6_addr gid;
	struct in_addr four;
	char text[INET6_ADDRSTRLEN];

	if (!vf->gid || inet_pton(AF_INET6, vf->gid, &gid) != 1) {
		if (!vf->gid || inet_pton(AF_INET, vf->gid, &four) != 1)
			return NULL;
	} else if (!IN6_IS_ADDR_V4MAPPED(&gid)) {
		memset(gid.s6_addr + 8, 0, 8);
		return arena_printf(a, "%s/64", inet_ntop(AF_INET6, &gid, text, sizeof(text)));
	} else {
		memcpy(&four, gid.s6_addr + 12, sizeof(four));
	}
	if (getifaddrs(&all) < 0)
		return NULL;
	for (const struct ifaddrs *i = all; i && !ret; i = i->ifa_next) {
		const struct sockaddr_in *own = (const void *)i->ifa_addr,
					 *mask = (const void *)i->ifa_netmask;
		struct in_addr net;

		if (!own || !mask || own->sin_family != AF_INET ||
		    own->sin_addr.s_addr != four.s_addr)
			continue;
		net.s_addr = four.s_addr & mask->sin_addr.s_addr;
		ret = arena_printf(a, "%s/%u", inet_ntop(AF_INET, &net, text, sizeof(text)),
				   prefix_of(mask));
	}
	freeifaddrs(all);
	return ret;
}

struct expectation peer_own_rate(const struct peer_side *s, const struct peer_end *ends, size_t n,
				 size_t of)
{
	struct expect_end *v = arena_array(s->report->arena, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i] = (struct expect_end) {
			&s->told->vfs[ends[i].vf],
			wire_port_gbps(s->devices[ends[i].vf]),
			ends[i].host ? NULL : s->gpus[ends[i].vf].bdf,
		};
	return expect_shared(s->root, v, n, of, s->report->arena);
}

static const char *own_name(const struct peer_side *s, struct arena *a)
{
	char host[256] = "";

	if (s->told->pod)
		return s->told->pod;
	gethostname(host, sizeof(host) - 1);
	return *host ? arena_strdup(a, host) : "unknown";
}

struct exchange_message peer_hello(const struct peer_side *s, const char *token)
{
	struct arena *a = s->report->arena;
	char host[64] = "";
	struct exchange_message m = {
		.type = EXCHANGE_HELLO,
		.token = token,
		.node = own_name(s, a),
		.vfs = arena_array(a, s->told->n_vfs + 1, sizeof(*m.vfs)),
	};

	/* Of one kernel: the same in all of its containers, and no other machine has it. */
	if (sysroot_read(s->root, host, sizeof(host), "proc/sys/kernel/random/boot_id") > 0)
		m.host = arena_strdup(a, str_trim(host));
	for (size_t i = 0; i < s->told->n_vfs; i++) {
		const struct told_vf *t = &s->told->vfs[i];

		if (s->devices[i])
			m.vfs[m.n_vfs++] = (struct exchange_vf) { t->hca, t->rail, t->plane,
								  peer_subnet_of(t, a) };
	}
	return m;
}

void peer_end_end(struct peer_end *e)
{
	wire_destroy(e->wire);
	if (e->host)
		wire_memory_free(&e->memory);
	*e = (struct peer_end) { .wire = NULL };
}

void peer_end_ends(struct peer_end *ends, size_t n)
{
	for (size_t i = 0; i < n; i++)
		peer_end_end(&ends[i]);
}

static int host_memory(const struct peer_side *s, size_t vf, size_t size, struct peer_end *ret)
{
	int r = wire_memory_host(size, &ret->memory);

	ret->host = r == 0;
	if (r < 0)
		report_finding(s->report, OUTCOME_NOT_MEASURED, "no-memory", s->told->vfs[vf].hca,
			       "%zu bytes of memory: %s", size, strerror(-r));
	return r;
}

/* Kept for all runs. */
static int give_gpu_memory(const struct peer_side *s, size_t vf, size_t size)
{
	struct peer_gpu *g = &s->gpus[vf];
	int r = gpu_open(s->root, g->bdf, s->report, &g->gpu);
	unsigned way;

	if (r == 0)
		r = gpu_direct(g->gpu, g->bdf, s->devices[vf], s->told->vfs[vf].hca, size, &way,
			       s->report, &g->memory);
	if (r == 0)
		return 0;
	gpu_close(g->gpu);
	*g = (struct peer_gpu) { .bdf = g->bdf };
	return r;
}

static int memory_of_gpu(const struct peer_side *s, size_t vf, size_t size, struct peer_end *ret)
{
	struct peer_gpu *g = &s->gpus[vf];
	const struct told *t = s->told;
	int r = 0;

	for (size_t i = 0; i < t->n_pairs && !g->bdf; i++)
		g->bdf = t->pairs[i].vf == vf ? t->gpus[t->pairs[i].gpu].bdf : NULL;
	if (!g->bdf) {
		report_finding(s->report, OUTCOME_NOT_MEASURED, "no-gpu", t->vfs[vf].hca,
			       "map.json has no GPU for this VF");
		return -ENODEV;
	}
	if (g->memory.size != size) {
		gpu_close(g->gpu);
		*g = (struct peer_gpu) { .bdf = g->bdf };
		r = give_gpu_memory(s, vf, size);
	}
	ret->memory = g->memory;
	return r;
}

int peer_make_end(const struct peer_side *s, size_t vf, size_t size, bool gpu, int pkey_index,
		  uint64_t seed, struct peer_end *ret)
{
	const struct wire_options o = { .gid_index = -1, .pkey_index = pkey_index };
	int r;

	ret->vf = vf;
	r = gpu ? memory_of_gpu(s, vf, size, ret) : host_memory(s, vf, size, ret);
	if (r < 0)
		return r;
	r = ret->memory.fill(&ret->memory, seed);
	if (r < 0)
		report_finding(s->report, OUTCOME_NOT_MEASURED, "memory-copy", s->told->vfs[vf].hca,
			       "%s memory cannot be filled: %s", ret->memory.name, strerror(-r));
	return r < 0 ? r : wire_create(s->devices[vf], &ret->memory, &o, s->report, &ret->wire);
}

void peer_put_end(const struct peer_side *s, const struct peer_end *ends, size_t n, size_t of,
		  struct exchange_end *ret)
{
	const struct peer_end *e = &ends[of];
	struct expectation rate = peer_own_rate(s, ends, n, of);

	wire_address_of(e->wire, &ret->address);
	ret->memory = e->memory.name;
	ret->gbps = rate.gbps;
	ret->limit = rate.limit;
}

uint64_t peer_client_seed(uint64_t seed, size_t i)
{
	return seed + 2 * i;
}

uint64_t peer_server_seed(uint64_t seed, size_t i)
{
	return seed + 2 * i + 1;
}

const char *peer_id_of_error(int error)
{
	return error == -ETIMEDOUT ? "peer-late" : error == -EPIPE ? "peer-died" : "peer-foreign";
}

struct report peer_report_of_run(const struct report *r)
{
	return (struct report) { .arena = r->arena, .told = r->told, .quiet = r->quiet };
}

void peer_merge(struct report *r, const struct report *of_run)
{
	for (size_t i = 0; i < of_run->n_findings; i++) {
		const struct finding *f = &of_run->findings[i];

		report_finding(r, f->outcome, f->sentence->id, f->on, "%s", f->what);
	}
	r->no_gpu_library = r->no_gpu_library || of_run->no_gpu_library;
}
