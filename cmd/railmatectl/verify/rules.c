/* The meaning of a record: a table of the beginnings of texts, then the catalogue of failures. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verify/verify-internal.h"

/* Step over the word, or stay and return false. */
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

static struct gpu *record_gpu(struct verify *v, const struct record *r)
{
	return r->proc && r->cuda >= 0 ? verify_gpu(v, r->proc, (unsigned)r->cuda) : NULL;
}

static bool is_tcp(const char *network)
{
	return strcasestr(network, "socket") || strcasestr(network, "tcp");
}

/* The interface of NCCL's own connections: "Bootstrap : Using eth0:10.0.0.1<0>", "… [RO]; OOB
 * eth0:10.0.0.1<0>" */
static void bootstrap_on(struct verify *v, const struct record *r, const char *interface)
{
	const struct map *map = r->proc ? verify_map_of(v, r->proc->host) : NULL;
	size_t n = strcspn(interface, ":");

	for (size_t i = 0; map && interface[n] && i < map->n_entries; i++) {
		const char *netdev = map->entries[i].netdev;

		if (netdev && strlen(netdev) == n && !strncmp(netdev, interface, n)) {
			verify_saw(v, SIGN_BOOTSTRAP, r->text);
			return;
		}
	}
}

/* --- channels between nodes: the HCA of each --- */

struct channel {
	uint64_t to_rank, from_rank, dev;
	char network[64];
	bool send, gdr, proxied;
};

/* "3[5d000]"; before 2.5 "3" */
static bool skip_rank(const char **p, uint64_t *rank)
{
	uint64_t device;

	return skip_number(p, 10, rank) &&
	       (!skip(p, "[") || (skip_number(p, 16, &device) && skip(p, "]")));
}

static bool read_channel(const char *p, struct channel *c)
{
	uint64_t number;
	size_t n;

	if (!(skip(&p, "Channel ") || skip(&p, "Ring ")) || !skip_number(&p, 10, &number))
		return false;
	if (skip(&p, "/") && !skip_number(&p, 10, &number))
		return false;
	if (!skip(&p, " : ") || !skip_rank(&p, &c->from_rank) || !skip(&p, " -> ") ||
	    !skip_rank(&p, &c->to_rank))
		return false;
	c->send = !skip(&p, " [receive]"); /* manuals leave "[send]" away */
	if (c->send)
		skip(&p, " [send]");
	if (!skip(&p, " via NET/"))
		return false;
	n = strcspn(p, "/");
	if (n == 0 || n >= sizeof(c->network) || p[n] != '/')
		return false;
	memcpy(c->network, p, n);
	c->network[n] = '\0';
	p += n + 1;
	if (!skip_number(&p, 10, &c->dev))
		return false;
	/* "[(proxy rank)][/GDRDMA][(PCI)][/Shared]", then nothing, RCCL's " comm 0x…", or the
	 * addition of a log's collector */
	if (p[0] == '(' && p[1] >= '0' && p[1] <= '9') {
		p++;
		c->proxied = skip_number(&p, 10, &number) && skip(&p, ")");
		if (!c->proxied)
			return false;
	}
	c->gdr = skip(&p, "/GDRDMA");
	skip(&p, "(PCI)");
	skip(&p, "/Shared");
	return *p == '\0' || !(isalnum((unsigned char)*p) || strchr("/([-_", *p));
}

static void on_channel(struct verify *v, const struct record *r)
{
	struct channel c = { 0 };
	struct gpu *g;
	uint64_t n = 0;

	/* "Channel 00/02 :    0   1   2   3", "Ring 00 : 3 -> 0 -> 1": the order of ranks */
	if (r->whole && !strstr(r->text, " via") &&
	    (r->text[0] == 'R' || !strpbrk(r->text + strlen("Channel "), "[>abcdefghijk")))
		return;
	if (!strstr(r->text, " via ") || !r->whole ||
	    (strstr(r->text, " via NET/") && !read_channel(r->text, &c))) {
		verify_saw(v, SIGN_DAMAGED, r->text);
		return;
	}
	if (!c.network[0]) {
		if (strstr(r->text, " via SHM"))
			verify_saw(v, SIGN_SHM, r->text);
		else if (strstr(r->text, " via P2P/MNNVL"))
			v->mnnvl_channels++, verify_ground(v, GROUND_INSIDE, r->text);
		else if (strstr(r->text, " via P2P/"))
			verify_ground(v, GROUND_INSIDE, r->text);
		return;
	}
	if (is_tcp(c.network)) {
		verify_saw(v, str_eq(c.network, "Socket") ? SIGN_SOCKET : SIGN_TCP_PLUGIN, r->text);
		v->tcp_channels++;
		return;
	}
	/* RCCL ends the line with the communicator's size. */
	number_after(r->text, " nRanks ", 10, &n);
	verify_rank(v, c.send ? c.from_rank : c.to_rank, n,
		    1 + (c.from_rank > c.to_rank ? c.from_rank : c.to_rank));
	*(r->proc ? &r->proc->names_rdma : &v->bare_rdma) = true;
	v->net_channels++;
	v->net_gdr += c.gdr;
	verify_ground(v, c.gdr ? GROUND_GDR : GROUND_PLAIN, r->text);
	if (!v->network[0])
		memcpy(v->network, c.network, sizeof(v->network));
	if (!r->proc && !c.gdr && c.dev < VERIFY_MAX_DEVS)
		v->bare_plain |= UINT64_C(1) << c.dev;
	g = record_gpu(v, r);
	if (g && c.dev < VERIFY_MAX_DEVS) {
		struct traffic *t = &g->by_dev[c.dev];

		if (!c.proxied)
			g->own_devs |= UINT64_C(1) << c.dev;
		if (g->rank < 0)
			g->rank = (int64_t)(c.send ? c.from_rank : c.to_rank);
		t->n[!c.send]++;
		t->gdr[!c.send] += c.gdr;
		if (!g->line || (!c.gdr && !g->proof_is_plain)) {
			g->source = v->source;
			g->line = v->line;
			g->proof_is_plain = !c.gdr;
		}
	}
}
/* --- the HCAs that NCCL found --- */

static struct hca *add_hca(struct proc *p, const char *name, size_t len, uint64_t dev)
{
	struct hca *h;
	static const char end[] = "_dma";

	if (p->n_hcas == VERIFY_MAX_DEVS || len >= MAX_NAME || dev >= VERIFY_MAX_DEVS)
		return NULL;
	p->hcas = xgrow(p->hcas, &p->cap_hcas, p->n_hcas + 1, sizeof(*p->hcas));
	h = &p->hcas[p->n_hcas++];
	*h = (struct hca) { .dev = (unsigned)dev };
	memcpy(h->name, name, len);
	/* "mlx5_4_dma": the Data Direct function of mlx5_4 (2.27 and newer), which NCCL_IB_HCA and
	 * the map call mlx5_4. */
	for (char *at = h->name; (at = strstr(at, end));) {
		size_t n = strlen(end);

		if (at == h->name || at[-1] == '+' || (at[n] && at[n] != '+'))
			at += n;
		else
			memmove(at, at + n, strlen(at + n) + 1);
	}
	return h;
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
	skip(p, "/SHARP");
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
	const char *oob = strstr(p, "OOB ");
	size_t len = strlen(p), n = 0;
	unsigned members;
	uint64_t dev;

	/* The last HCA is whole where the out-of-band interface follows, or where a manual leaves
	 * it away. */
	if (!r->whole || !(oob || (len > 3 && !strcmp(p + len - 3, "/IB")) ||
			   (len > 6 && !strcmp(p + len - 6, "/SHARP")) ||
			   (len > 5 && !strcmp(p + len - 5, "/RoCE"))))
		return;
	verify_ground(v, GROUND_USING, r->text);
	if (!r->proc)
		return;
	/* The HCAs of a "Using" line replace those of an earlier communicator; fused HCAs have
	 * lines of their own. */
	for (size_t i = 0; i < r->proc->n_hcas; i++) {
		if (r->proc->hcas[i].fused)
			r->proc->hcas[n++] = r->proc->hcas[i];
	}
	r->proc->n_hcas = n;
	r->proc->using_source = v->source;
	r->proc->using_line = v->line;
	while (*p == ' ')
		p++;
	while (skip(&p, "[") && skip_number(&p, 10, &dev) && skip(&p, "]") &&
	       skip_group(&p, r->proc, dev, &members)) {
		if (members > 1)
			verify_saw(v, SIGN_FUSED, r->text);
		while (*p == ' ')
			p++;
	}
	if (oob)
		bootstrap_on(v, r, oob + strlen("OOB "));
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
	if (r->proc && dev < VERIFY_MAX_DEVS && number_after(r->text, " speed=", 10, &members) &&
	    members < UINT32_MAX)
		r->proc->speed_mbps[dev] = (uint32_t)members;
	name += strlen("name=");
	h = r->proc ? add_hca(r->proc, name, strcspn(name, " "), dev) : NULL;
	if (h)
		h->fused = true;
}

/* "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", a plugin's name in the place of IB. */
static void on_gdr_of_hca(struct verify *v, const struct record *r)
{
	uint64_t dev;

	if (!strstr(r->text, "RDMA Disabled") || !number_after(r->text, "for HCA ", 10, &dev) ||
	    dev >= VERIFY_MAX_DEVS)
		return;
	*(r->proc ? &r->proc->gdr_disabled : &v->bare_disabled) |= UINT64_C(1) << dev;
	verify_ground(v, GROUND_WHY, r->text);
}

/* "… Disabled for GPU 1b000 / HCA 2 (distance 8 > 5)"; 2.29: "… for GPU/0-1b000 (rank 3) - NET/0-2
 * (distance 8 > 5)". */
static void on_gdr_of_gpu(struct verify *v, const struct record *r)
{
	struct gpu *g = record_gpu(v, r);
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
/* --- the communicator, its network, its variables --- */

static void largest(uint64_t *value, uint64_t n)
{
	*value = n > *value ? n : *value;
}

/* "… comm 0x… rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 … - Init START", "comm … rank 3
 * nRanks 16 nNodes 2 …" */
static void on_comm(struct verify *v, const struct record *r)
{
	struct gpu *g = record_gpu(v, r);
	uint64_t n, rank;

	if (!r->whole || !number_after(r->text, " rank ", 10, &rank))
		return;
	if (r->proc && strstr(r->text, "Init COMPLETE"))
		r->proc->completed = true;
	if (strstr(r->text, "Destroy COMPLETE") || strstr(r->text, "Abort COMPLETE")) {
		if (r->proc)
			r->proc->ended = true;
		if (strstr(r->text, "Destroy"))
			verify_ground(v, GROUND_END, r->text);
	}
	if (number_after(r->text, " nranks ", 10, &n) ||
	    number_after(r->text, " nRanks ", 10, &n)) {
		verify_rank(v, rank, n, 0);
		v->bare_comm = v->bare_comm || !r->proc;
		largest(&v->bench.run.ranks, n);
		if (g && n >= g->comm && (n > g->comm || g->rank < 0)) {
			g->rank = (int64_t)(rank & INT32_MAX);
			g->comm = n;
		}
	}
	if (number_after(r->text, " nNodes ", 10, &n)) {
		largest(&v->nodes, n);
		largest(&v->bench.run.nodes, n);
		if (n > 1)
			verify_ground(v, GROUND_NODES, r->text);
	}
	if (number_after(r->text, " localRanks ", 10, &n) && n < UINT32_MAX) {
		largest(&v->bench.run.local, n);
		if (r->proc && n > r->proc->local_ranks)
			r->proc->local_ranks = (unsigned)n;
	}
	if (g && number_after(r->text, " busId ", 16, &n))
		g->bus = n;
}

/* "Using network IB"; 2.27 and newer: "Assigned NET plugin IB to comm" */
static void on_network(struct verify *v, const struct record *r)
{
	bool assigned = r->text[0] == 'A', tcp;
	const char *name = r->text + strlen(assigned ? "Assigned NET plugin " : "Using network "),
		   *end = assigned ? strstr(name, " to comm") : name + strlen(name);
	char copy[sizeof(v->network)] = "";
	size_t n = end ? (size_t)(end - name) : 0;

	if (!n || !(assigned || r->whole))
		return;
	memcpy(copy, name, n < sizeof(copy) ? n : sizeof(copy) - 1);
	tcp = is_tcp(copy);
	if (tcp)
		verify_saw(v, str_eq(copy, "Socket") ? SIGN_SOCKET : SIGN_TCP_PLUGIN, r->text);
	else if (strncmp(copy, "IB", 2) != 0)
		verify_saw(v, SIGN_PLUGIN, r->text);
	if (!tcp)
		*(r->proc ? &r->proc->names_rdma : &v->bare_rdma) = true;
	verify_ground(v, GROUND_NETWORK, r->text);
	if (!v->network[0] || tcp)
		memcpy(v->network, copy, sizeof(copy));
}

/* "NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)"; newer "NET/OFI Selected provider is
 * efa, fabric is efa-direct (found 4 nics)" */
static void on_provider(struct verify *v, const struct record *r)
{
	static const char *const rdma[] = { "efa", "verbs", "cxi", "psm3", "opx" };
	const char *name = strcasestr(r->text, "provider is ");

	if (!name)
		return;
	name += strlen("provider is ");
	if (str_starts(name, "tcp") || str_starts(name, "sockets") || str_starts(name, "udp"))
		verify_saw(v, SIGN_TCP_PLUGIN, r->text);
	for (size_t i = 0; i < ARRAY_LEN(rdma); i++)
		v->rdma_provider = v->rdma_provider || str_starts(name, rdma[i]);
}

/* The HCA of this number in NCCL's own list; NULL: not known, or some share a number there
 * (fused, 2.20 to 2.23). */
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

/* "NET/IB: [0] mlx5_4:uverbs4:1/RoCE provider=Mlx5 speed=400000 …", or
 * NET/IB: … qpn 412 (2.30: qp_num) … GID 3 (0/DDCCBBAAFFFF0000): raw words of a 16-byte GID, so the
 * byte order is the machine's. */
static void on_connection(struct verify *v, const struct record *r)
{
	const char *nic = r->text + strlen("NET/IB: "), *p = strstr(r->text, " GID ");
	uint64_t dev, speed, index, prefix;
	const struct map *map;

	if (r->proc && skip(&nic, "[") && skip_number(&nic, 10, &dev) && dev < VERIFY_MAX_DEVS &&
	    number_after(nic, " speed=", 10, &speed) && speed < UINT32_MAX)
		r->proc->speed_mbps[dev] = (uint32_t)speed;
	if (!p || !(strstr(r->text, " qp_num ") || strstr(r->text, " qpn ")) || !r->whole)
		return;
	p += strlen(" GID ");
	if (!skip_number(&p, 10, &index) || !skip(&p, " (") || !skip_number(&p, 16, &prefix))
		return;
	if (prefix == 0x80fe || prefix == UINT64_C(0xfe80000000000000))
		verify_saw(v, SIGN_LINK_LOCAL, r->text);
	/* The container got a GID's index, but NCCL may use another one. */
	map = r->proc ? verify_map_of(v, r->proc->host) : NULL;
	if (map && number_after(r->text, " IbDev ", 10, &dev)) {
		const struct hca *hca = hca_numbered(r->proc, dev);
		const struct map_entry *e =
			hca ? map_entry_of(map, hca->name, strlen(hca->name), hca->port) : NULL;

		if (e && e->gid_index >= 0 && (uint64_t)e->gid_index != index)
			verify_saw(v, SIGN_GID_OTHER, r->text);
	}
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
	if (r->proc && name_len == strlen("NCCL_IB_HCA") &&
	    !strncmp(name, "NCCL_IB_HCA", name_len)) {
		freep(&r->proc->wanted);
		r->proc->wanted = xasprintf("%.*s", (int)len, value);
	}
	for (enum env env = 0; env < ENV_MAX; env++) {
		char *copy = v->env[env];

		if (name_len != strlen(names[env]) || strncmp(name, names[env], name_len) != 0)
			continue;
		(void)snprintf(copy, sizeof(v->env[env]), "%.*s", (int)len, value);
		if (env == ENV_GID_INDEX && strcmp(copy, "-1") != 0 && !is_index_of_map(v, r, copy))
			verify_saw(v, SIGN_GID_FIXED, r->text);
		if (env == ENV_GDR_LEVEL &&
		    (!strcmp(copy, "SYS") || !strcmp(copy, "PHB") || atoi(copy) > 2))
			verify_saw(v, SIGN_GDR_FORCED, r->text);
	}
}

static void on_bootstrap(struct verify *v, const struct record *r)
{
	const char *name = strstr(r->text, "Using ");

	if (name)
		bootstrap_on(v, r, name + strlen("Using "));
}

/* "GDRCOPY enabled library 2.3 driver 2.3" */
static void on_gdrcopy(struct verify *v, const struct record *r)
{
	verify_ground(v, GROUND_GDRCOPY, r->text);
}

/* "NET/Socket : Using [0]eth0:10.0.0.5<0>": the process found nothing better, or may not. */
static void on_socket(struct verify *v, const struct record *r)
{
	struct place *place = r->proc ? &r->proc->socket : &v->bare_socket;

	if (!place->source)
		*place = (struct place) { v->source, v->line };
}

/* "transport/net.cc:1137 -> 6", "group.cc:65 -> 2 [Async thread]": 0 is success, 7 in progress. */
static bool on_trace(struct verify *v, const struct record *r)
{
	static const struct {
		const char *file;
		enum trace trace;
	} forgiven[] = { { "socket.cc:", TRACE_END },	   { "proxy.cc:", TRACE_END },
			 { "transport.cc:", TRACE_SHARP }, { "coll_net.", TRACE_SHARP },
			 { "sharp", TRACE_SHARP },	   { "init.cc:", TRACE_SHARP } };
	const char *arrow = strstr(r->text, " -> "), *p = arrow ? arrow + strlen(" -> ") : "";
	const char *at = arrow;
	uint64_t code;

	if (!skip_number(&p, 10, &code) || code == 0 || code == 7 || code > 99)
		return false;
	if (at[-1] == ')') /* "net.cc:12 (function) -> 3" */
		while (at > r->text && *at != '(')
			at--;
	while (at > r->text && (isdigit((unsigned char)at[-1]) || at[-1] == ' '))
		at--;
	if (at < r->text + 4 || at[-1] != ':' || !memchr(r->text, '.', (size_t)(at - r->text)))
		return false;
	for (size_t i = 0; r->proc && i < ARRAY_LEN(forgiven); i++) {
		struct place *place = &r->proc->traces[forgiven[i].trace];
		const char *file = strstr(r->text, forgiven[i].file);

		if (!file || file > arrow || (forgiven[i].trace == TRACE_END && code != 3))
			continue;
		if (!place->source)
			*place = (struct place) { v->source, v->line };
		return true;
	}
	if (r->proc)
		r->proc->failed = true;
	verify_saw(v, SIGN_TRACE, r->text);
	return true;
}

/* Subsystem GRAPH: "    + PCI[24.0] - GPU/0-1b000 (0)"; " Pattern 4, crossNic 0, nChannels 16, bw
 * 45/45, type NVL/PIX, sameChannels 1": the worst link between GPUs of a node, then to NICs. */
static void on_tree(struct verify *v, const struct record *r)
{
	const char *p = strstr(r->text, "+ PCI[");
	double rate = p ? strtod(p + strlen("+ PCI["), NULL) : 0;

	if (rate > 0 && strstr(p, "] - GPU/") == strchr(p, ']') &&
	    (v->gpu_link <= 0 || rate < v->gpu_link))
		v->gpu_link = rate;
	if (strstr(r->text, ", type ") && r->whole)
		verify_ground(v, GROUND_INSIDE, r->text);
}

/* The first counts; "2.20.5+cuda12.2" and "2.20.5" are one. */
void verify_version(struct verify *v, const char *version, size_t len)
{
	size_t n = strcspn(v->version, "+-"), m = strcspn(version, "+- ,");

	if (!v->version[0])
		memcpy(v->version, version, len);
	else if (n != m || strncmp(v->version, version, n) != 0)
		verify_saw(v, SIGN_TWO_VERSIONS, version);
}

static const struct rule {
	const char *begin;
	void (*fn)(struct verify *v, const struct record *r);
} rules[] = {
	{ "Channel ", on_channel },
	{ "Ring ", on_channel },
	{ "NET/Socket : Using", on_socket },
	{ "comm ", on_comm },
	{ "ncclComm", on_comm },
	{ "NET/IB : Using", on_using },
	{ "NET/IB : Made virtual device", on_virtual },
	{ "NET/IB: ", on_connection },
	{ "NET/OFI Selected ", on_provider },
	{ "NET/", on_gdr_of_hca },
	{ "GPU Direct RDMA", on_gdr_of_gpu },
	{ "Using network ", on_network },
	{ "Assigned NET plugin ", on_network },
	{ "NCCL_", on_variable },
	{ "Bootstrap", on_bootstrap },
	{ "GDRCOPY ", on_gdrcopy },
	{ "Pattern ", on_tree },
	{ " ", on_tree },
};

void verify_record(struct verify *v, const struct record *r)
{
	unsigned id, hints;

	for (size_t i = 0; !r->warn && i < ARRAY_LEN(rules); i++) {
		if (!strncmp(r->text, rules[i].begin, strlen(rules[i].begin))) {
			rules[i].fn(v, r);
			if (r->text[0] == 'C' || r->text[0] == 'c' || r->text[0] == 'R')
				return;
			break;
		}
	}
	if (!r->warn && on_trace(v, r))
		return;
	id = verify_phrases_match(&v->phrases, r->text, strlen(r->text),
				  r->warn ? VOICE_WARN : VOICE_INFO, &hints);
	/* "Unable to open device mlx5_4": harmless when it is another container's. Without a map
	 * there is nothing to compare with; without a name the line was cut. */
	if (id == SIGN_OPEN_DEVICE) {
		const char *name = strstr(r->text, "device ");
		const struct map *map = name && r->proc ? verify_map_of(v, r->proc->host) : NULL;

		if (map && map_entry_of(map, name + strlen("device "),
					strcspn(name + strlen("device "), " "), 0))
			id = SIGN_OPEN_DEVICE_OURS;
	}
	if (id < SIGN_MAX)
		verify_saw(v, id, r->text);
	else if (r->warn && r->whole)
		verify_warned(v, r->text);
}
