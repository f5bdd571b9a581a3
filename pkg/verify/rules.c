/* What a record says: a table of how texts begin, then the catalogue of failures. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verify/verify-internal.h"

/* Step over the word, or stay and say no. */
static bool skip(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

static bool skip_number(const char **p, int base, uint64_t *ret)
{
	char *end;

	if (strspn(*p, base == 16 ? "0123456789abcdefABCDEF" : "0123456789") == 0)
		return false;
	*ret = strtoull(*p, &end, base);
	*p = end;
	return true;
}

/* The number after this word, anywhere. */
static bool number_after(const char *text, const char *word, int base, uint64_t *ret)
{
	const char *p = strstr(text, word);

	if (!p)
		return false;
	p += strlen(word);
	return skip_number(&p, base, ret);
}

static struct gpu *gpu_of(struct verify *v, const struct record *r)
{
	return r->proc && r->cuda >= 0 ? verify_gpu(v, r->proc, (unsigned)r->cuda) : NULL;
}

/* --- channels --- */

struct channel {
	uint64_t to_rank, from_rank, dev;
	char network[64];
	bool send, gdr, proxied;
};

static bool skip_rank(const char **p, uint64_t *rank)
{
	uint64_t device;

	return skip_number(p, 10, rank) && skip(p, "[") && skip_number(p, 16, &device) && skip(p, "]");
}

static bool skip_network(const char **p, char name[64])
{
	size_t n = strcspn(*p, "/");

	if (n == 0 || n >= 64 || (*p)[n] != '/')
		return false;
	memcpy(name, *p, n);
	name[n] = '\0';
	*p += n + 1;
	return true;
}

/* "[(proxy rank)][/GDRDMA][(PCI)][/Shared]", then nothing, or RCCL's " comm 0x…". */
static bool read_ways(const char *p, struct channel *c)
{
	uint64_t proxy;

	if (p[0] == '(' && p[1] >= '0' && p[1] <= '9') {
		p++;
		c->proxied = skip_number(&p, 10, &proxy) && skip(&p, ")");
		if (!c->proxied)
			return false;
	}
	c->gdr = skip(&p, "/GDRDMA");
	skip(&p, "(PCI)");
	skip(&p, "/Shared");
	return *p == '\0' || !strncmp(p, " comm ", 6);
}

static bool read_channel(const char *p, struct channel *c)
{
	uint64_t number;

	if (!skip(&p, "Channel ") || !skip_number(&p, 10, &number))
		return false;
	if (skip(&p, "/") && !skip_number(&p, 10, &number))
		return false;
	if (!skip(&p, " : ") || !skip_rank(&p, &c->from_rank) || !skip(&p, " -> ") ||
	    !skip_rank(&p, &c->to_rank))
		return false;
	c->send = skip(&p, " [send]");
	if (!c->send && !skip(&p, " [receive]"))
		return false;
	return skip(&p, " via NET/") && skip_network(&p, c->network) && skip_number(&p, 10, &c->dev) &&
	       read_ways(p, c);
}

static void count_channel(struct verify *v, const struct channel *c, struct gpu *g)
{
	struct traffic *t = &g->by_dev[c->dev];

	if (!c->proxied)
		g->own_devs |= UINT64_C(1) << c->dev;
	if (g->rank < 0)
		g->rank = (int64_t)(c->send ? c->from_rank : c->to_rank);
	if (c->send) {
		t->send++;
		t->send_gdr += c->gdr;
	} else {
		t->receive++;
		t->receive_gdr += c->gdr;
	}
	if (!g->line || (!c->gdr && !g->proof_is_plain)) {
		g->source = v->source;
		g->line = v->line;
		g->proof_is_plain = !c->gdr;
	}
}

static void on_channel(struct verify *v, const struct record *r)
{
	struct channel c = { 0 };
	struct gpu *g;

	if (!strstr(r->text, " via ") || !r->whole ||
	    (strstr(r->text, " via NET/") && !read_channel(r->text, &c))) {
		verify_saw(v, SIGN_DAMAGED, r->text);
		return;
	}
	if (!c.network[0])
		return;
	if (!strcmp(c.network, "Socket")) {
		verify_saw(v, SIGN_SOCKET, r->text);
		return;
	}
	v->net_channels++;
	v->net_gdr += c.gdr;
	verify_ground(v, c.gdr ? GROUND_GDR : GROUND_PLAIN, r->text);
	if (!v->network[0])
		memcpy(v->network, c.network, sizeof(v->network));
	g = gpu_of(v, r);
	if (g && c.dev < VERIFY_MAX_DEVS)
		count_channel(v, &c, g);
}

/* --- HCAs --- */

static struct hca *add_hca(struct proc *p, const char *name, size_t len, uint64_t dev)
{
	struct hca *h;

	if (p->n_hcas == VERIFY_MAX_DEVS || len >= MAX_NAME || dev >= VERIFY_MAX_DEVS)
		return NULL;
	p->hcas = xgrow(p->hcas, &p->cap_hcas, p->n_hcas + 1, sizeof(*p->hcas));
	h = &p->hcas[p->n_hcas++];
	*h = (struct hca) { .dev = (unsigned)dev };
	memcpy(h->name, name, len);
	return h;
}

/* What stands in a "Using" line replaces the one of an earlier communicator; fused HCAs have lines of their
 * own. */
static void forget_plain(struct proc *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_hcas; i++) {
		if (p->hcas[i].fused)
			p->hcas[n++] = p->hcas[i];
	}
	p->n_hcas = n;
}

/* "mlx5_0:1[:rail[:plane]]/RoCE" */
static bool skip_hca(const char **p, struct proc *proc, uint64_t dev)
{
	const char *name = *p;
	size_t len = strcspn(name, ":/ ,}");
	uint64_t port = 0;
	struct hca *h;

	*p += len;
	if (!len || !skip(p, ":") || !skip_number(p, 10, &port))
		return false;
	*p += strspn(*p, ":-0123456789");
	if (!skip(p, "/") || !(skip(p, "IB") || skip(p, "RoCE")))
		return false;
	h = add_hca(proc, name, len, dev);
	if (h)
		h->port = (unsigned)port;
	return true;
}

/* 2.20 to 2.23: "{[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}": fused. */
static bool skip_group(const char **p, struct proc *proc, uint64_t dev, unsigned *ret_members)
{
	uint64_t index;

	*ret_members = 0;
	if (!skip(p, "={"))
		return ++*ret_members, skip_hca(p, proc, dev);
	while (skip(p, "[") && skip_number(p, 10, &index) && skip(p, "]")) {
		skip(p, " ");
		if (!skip_hca(p, proc, dev))
			return false;
		++*ret_members;
		skip(p, ", ");
	}
	return skip(p, "}");
}

static void on_using(struct verify *v, const struct record *r)
{
	const char *p = r->text + strlen("NET/IB : Using");
	unsigned members;
	uint64_t dev;

	if (!r->proc || !r->whole || !strstr(p, "OOB "))
		return;
	forget_plain(r->proc);
	r->proc->using_source = v->source;
	r->proc->using_line = v->line;
	verify_ground(v, GROUND_USING, r->text);
	while (*p == ' ')
		p++;
	while (skip(&p, "[") && skip_number(&p, 10, &dev) && skip(&p, "]") &&
	       skip_group(&p, r->proc, dev, &members)) {
		if (members > 1)
			verify_saw(v, SIGN_FUSED, r->text);
		while (*p == ' ')
			p++;
	}
}

/* "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2" */
static void on_virtual(struct verify *v, const struct record *r)
{
	const char *name = strstr(r->text, "name=");
	uint64_t dev, members;
	struct hca *h;

	if (!name || !number_after(r->text, "device [", 10, &dev) ||
	    !number_after(r->text, "ndevs=", 10, &members))
		return;
	if (members < 2)
		return;
	verify_saw(v, SIGN_FUSED, r->text);
	name += strlen("name=");
	h = r->proc ? add_hca(r->proc, name, strcspn(name, " "), dev) : NULL;
	if (h)
		h->fused = true;
}

/* "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", a plugin's name in the place of IB. */
static void on_gdr_of_hca(struct verify *v, const struct record *r)
{
	uint64_t dev;

	if (!r->proc || !strstr(r->text, "RDMA Disabled") || !number_after(r->text, "for HCA ", 10, &dev) ||
	    dev >= 64)
		return;
	r->proc->gdr_disabled |= UINT64_C(1) << dev;
	verify_ground(v, GROUND_WHY, r->text);
}

/* "… Disabled for GPU 1b000 / HCA 2 (distance 8 > 5)"; 2.29: "… for GPU/0-1b000 (rank 3) - NET/0-2 (distance
 * 8 > 5)". */
static void on_gdr_of_gpu(struct verify *v, const struct record *r)
{
	struct gpu *g = gpu_of(v, r);
	uint64_t dev, distance, limit, rank, bus;
	const char *p = strstr(r->text, "(distance "), *net = strstr(r->text, "NET/");

	if (!g || !p || !strstr(r->text, "RDMA Disabled"))
		return;
	if (number_after(r->text, "for GPU ", 16, &bus) && g->bus && bus != g->bus)
		return;
	if (number_after(r->text, "(rank ", 10, &rank) && g->rank >= 0 && rank != (uint64_t)g->rank)
		return;
	p += strlen("(distance ");
	if (!skip_number(&p, 10, &distance) || !skip(&p, " > ") || !skip_number(&p, 10, &limit))
		return;
	if (!number_after(r->text, "HCA ", 10, &dev) && !(net && number_after(net, "-", 10, &dev)))
		return;
	if (dev >= 64)
		return;
	g->far_devs |= UINT64_C(1) << dev;
	g->far_distance = (unsigned)distance;
	g->far_limit = (unsigned)limit;
	verify_ground(v, GROUND_WHY, r->text);
}

/* --- communicators, the network, variables --- */

/* "… comm 0x… rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 … - Init START", "comm … rank 3 nRanks 16
 * nNodes 2 …" */
static void on_comm(struct verify *v, const struct record *r)
{
	struct gpu *g = gpu_of(v, r);
	uint64_t n, rank;

	if (!r->whole || !number_after(r->text, " rank ", 10, &rank))
		return;
	if ((number_after(r->text, " nranks ", 10, &n) || number_after(r->text, " nRanks ", 10, &n)) &&
	    n > v->ranks)
		v->ranks = n;
	if (number_after(r->text, " nNodes ", 10, &n)) {
		v->nodes = n > v->nodes ? n : v->nodes;
		if (n > 1)
			verify_ground(v, GROUND_NODES, r->text);
	}
	if (r->proc && number_after(r->text, " localRanks ", 10, &n) && n > r->proc->local_ranks &&
	    n < UINT32_MAX)
		r->proc->local_ranks = (unsigned)n;
	if (!g)
		return;
	if (g->rank < 0)
		g->rank = (int64_t)(rank & INT32_MAX);
	if (number_after(r->text, " busId ", 16, &n))
		g->bus = n;
}

static void set_network(struct verify *v, const struct record *r, const char *name, size_t n)
{
	bool socket = n == strlen("Socket") && !strncmp(name, "Socket", n);

	if (socket)
		verify_saw(v, SIGN_SOCKET, r->text);
	else if (strncmp(name, "IB", 2) != 0)
		verify_saw(v, SIGN_PLUGIN, r->text);
	verify_ground(v, GROUND_NETWORK, r->text);
	if (n >= sizeof(v->network) || (v->network[0] && !socket))
		return;
	memcpy(v->network, name, n);
	v->network[n] = '\0';
}

static void on_network(struct verify *v, const struct record *r)
{
	const char *name = r->text + strlen("Using network ");

	if (r->whole && *name)
		set_network(v, r, name, strlen(name));
}

/* 2.27 and newer: "Assigned NET plugin IB to comm" */
static void on_assigned(struct verify *v, const struct record *r)
{
	const char *name = r->text + strlen("Assigned NET plugin "), *end = strstr(name, " to comm");

	if (end && end > name)
		set_network(v, r, name, (size_t)(end - name));
}

/* The HCA of this number in NCCL's own list; NULL: not known, or some share a number there (fused, 2.20 to
 * 2.23). */
static const struct hca *hca_numbered(const struct proc *p, uint64_t dev)
{
	const struct hca *found = NULL;
	uint64_t seen = 0;

	for (size_t i = 0; i < p->n_hcas; i++) {
		const struct hca *h = &p->hcas[i];

		if (h->fused)
			continue;
		if (seen >> h->dev & 1)
			return NULL;
		seen |= UINT64_C(1) << h->dev;
		if (h->dev == dev)
			found = h;
	}
	return found;
}

/* The container was told of a GID; NCCL may have its own mind. */
static void compare_gid(struct verify *v, const struct record *r, uint64_t index)
{
	const struct map *map = r->proc ? verify_map_of(v, r->proc->host) : NULL;
	const struct map_entry *e;
	const struct hca *hca;
	uint64_t dev;

	if (!map || !number_after(r->text, " IbDev ", 10, &dev))
		return;
	hca = hca_numbered(r->proc, dev);
	e = hca ? map_entry_of(map, hca->name, strlen(hca->name), hca->port) : NULL;
	if (e && e->gid_index >= 0 && (uint64_t)e->gid_index != index)
		verify_saw(v, SIGN_GID_OTHER, r->text);
}

/* NET/IB: … qpn 412 (2.30: qp_num) … GID 3 (0/DDCCBBAAFFFF0000): raw words of a 16-byte GID, so the byte
 * order is the machine's. */
static void on_connection(struct verify *v, const struct record *r)
{
	uint64_t index, prefix;
	const char *p = strstr(r->text, " GID ");

	if (!p || !(strstr(r->text, " qp_num ") || strstr(r->text, " qpn ")) || !r->whole)
		return;
	p += strlen(" GID ");
	if (!skip_number(&p, 10, &index) || !skip(&p, " (") || !skip_number(&p, 16, &prefix))
		return;
	if (prefix == 0x80fe || prefix == UINT64_C(0xfe80000000000000))
		verify_saw(v, SIGN_LINK_LOCAL, r->text);
	compare_gid(v, r, index);
}

static void set_wanted(struct proc *proc, const char *value, size_t len)
{
	char *copy = xcalloc(len + 1, 1);

	memcpy(copy, value, len);
	freep(&proc->wanted);
	proc->wanted = copy;
}

static bool is_far_level(const char *level)
{
	return !strcmp(level, "SYS") || !strcmp(level, "PHB") || atoi(level) > 2;
}

/* The index that railmate found right for all of the container's VFs, and set. */
static bool is_index_of_map(const struct verify *v, const struct record *r, const char *index)
{
	const struct map *map = r->proc ? verify_map_of(v, r->proc->host) : NULL;

	for (size_t i = 0; map && i < map->n_entries; i++) {
		if (map->entries[i].gid_index != strtoll(index, NULL, 10))
			return false;
	}
	return map && map->n_entries;
}

static void set_env(struct verify *v, enum env env, const char *value, size_t len, const struct record *r)
{
	char *copy = v->env[env];
	size_t n = len < sizeof(v->env[env]) ? len : sizeof(v->env[env]) - 1;

	memcpy(copy, value, n);
	copy[n] = '\0';
	if (env == ENV_GID_INDEX && strcmp(copy, "-1") != 0 && !is_index_of_map(v, r, copy))
		verify_saw(v, SIGN_GID_FIXED, r->text);
	if (env == ENV_GDR_LEVEL && is_far_level(copy))
		verify_saw(v, SIGN_GDR_FORCED, r->text);
}

/* "NCCL_X set to V", "NCCL_X set by environment to V." */
static void on_variable(struct verify *v, const struct record *r)
{
	static const char *const names[ENV_MAX] = {
		[ENV_GDR_LEVEL] = "NCCL_NET_GDR_LEVEL", [ENV_GDR_READ] = "NCCL_NET_GDR_READ",
		[ENV_P2P_DISABLE] = "NCCL_P2P_DISABLE", [ENV_SHM_DISABLE] = "NCCL_SHM_DISABLE",
		[ENV_GID_INDEX] = "NCCL_IB_GID_INDEX",
	};
	const char *name = r->text, *value = r->text + strcspn(r->text, " ");
	size_t name_len = (size_t)(value - name), len;

	if (!r->whole || !(skip(&value, " set to ") || skip(&value, " set by environment to ")))
		return;
	len = strlen(value);
	if (len && value[len - 1] == '.')
		len--;
	if (r->proc && name_len == strlen("NCCL_IB_HCA") && !strncmp(name, "NCCL_IB_HCA", name_len))
		set_wanted(r->proc, value, len);
	for (size_t i = 0; i < ENV_MAX; i++) {
		if (name_len == strlen(names[i]) && !strncmp(name, names[i], name_len))
			set_env(v, (enum env)i, value, len, r);
	}
}

static const struct rule {
	const char *begin;
	void (*fn)(struct verify *v, const struct record *r);
} rules[] = {
	{ "Channel ", on_channel },
	{ "comm ", on_comm },
	{ "ncclComm", on_comm },
	{ "NET/IB : Using", on_using },
	{ "NET/IB : Made virtual device", on_virtual },
	{ "NET/IB: ", on_connection },
	{ "NET/", on_gdr_of_hca },
	{ "GPU Direct RDMA", on_gdr_of_gpu },
	{ "Using network ", on_network },
	{ "Assigned NET plugin ", on_assigned },
	{ "NCCL_", on_variable },
};

/* "Unable to open device mlx5_4": harmless when it is somebody else's. */
static enum sign_id whose_device(const struct verify *v, const struct record *r)
{
	const char *name = strstr(r->text, "device ");
	const struct map *map = name && r->proc ? verify_map_of(v, r->proc->host) : NULL;

	if (!map) /* nothing to compare with, or cut before the name */
		return SIGN_OPEN_DEVICE;
	name += strlen("device ");
	return map_entry_of(map, name, strcspn(name, " "), 0) ? SIGN_OPEN_DEVICE_OURS : SIGN_OPEN_DEVICE;
}

void verify_record(struct verify *v, const struct record *r)
{
	enum sign_id id;

	for (size_t i = 0; !r->warn && i < ARRAY_LEN(rules); i++) {
		if (!strncmp(r->text, rules[i].begin, strlen(rules[i].begin))) {
			rules[i].fn(v, r);
			if (r->text[0] == 'C' || r->text[0] == 'c')
				return;
			break;
		}
	}
	id = sign_match(r->text, r->warn);
	if (id == SIGN_OPEN_DEVICE)
		id = whose_device(v, r);
	if (id != SIGN_MAX)
		verify_saw(v, id, r->text);
}
