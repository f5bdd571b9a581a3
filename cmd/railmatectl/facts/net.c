/* Ports, tables and netdevs from files; VFs and QoS from the running kernel; limits from our own
 * process. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "devstate/devstate.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "facts/net.h"
#include "hw/inventory.h"
#include "netlink/netlink.h"
#include "sysroot/sysroot.h"

#define RDMA_DIR     "sys/class/infiniband"
#define NET_DIR	     "sys/class/net"
#define CAP_IPC_LOCK 14
#define PKEY_FULL    0x8000
#define PKEYS_MAX    128
#define NOT_LIVE     "this is not the running machine"
#define NO_NETDEV    "its netdev is not in this network namespace"

struct gather {
	const struct sysroot *root;
	const struct hw_inventory *inv;
	struct arena *arena;
	bool live, own_dev;
};

/* --- RDMA devices --- */

static const char *read_rdma(const struct gather *g, const char *rdma, const char *file)
{
	char text[128], *value;

	if (sysroot_read(g->root, text, sizeof(text), RDMA_DIR "/%s/%s", rdma, file) < 0)
		return NULL;
	value = str_trim(text);
	return *value ? arena_strdup(g->arena, value) : NULL;
}

static const struct hw_port *first_port(const struct hw_rdma *rdma)
{
	for (size_t i = 0; i < rdma->n_ports; i++) {
		if (str_eq(rdma->ports[i].state, "ACTIVE"))
			return &rdma->ports[i];
	}
	return rdma->n_ports ? &rdma->ports[0] : NULL;
}

/* "Global tclass=106", and rules for single destinations below it. */
static int read_traffic_class(const struct gather *g, const char *rdma, int port)
{
	static const char start[] = "Global tclass=";
	char text[4096];
	uint64_t tc;

	if (sysroot_read(g->root, text, sizeof(text), RDMA_DIR "/%s/tc/%d/traffic_class", rdma,
			 port) < 0 ||
	    !str_starts(text, start))
		return -1;
	text[strcspn(text, "\n")] = '\0';
	return str_to_u64(text + sizeof(start) - 1, 10, UINT8_MAX, &tc) < 0 ? -1 : (int)tc;
}

static void read_pkeys(const struct gather *g, const char *rdma, struct facts_rdma *ret)
{
	uint16_t keys[PKEYS_MAX];
	uint64_t first;
	size_t n;

	if (sysroot_read_u64(g->root, 16, &first, RDMA_DIR "/%s/ports/%d/pkeys/0", rdma,
			     ret->port) < 0 ||
	    first > UINT16_MAX)
		return;
	n = devstate_pkeys(g->root, rdma, ret->port, keys, ARRAY_LEN(keys));
	ret->pkey0 = (int)first;
	ret->n_pkeys = (int)n;
	ret->n_full = 0;
	for (size_t i = 0; i < n; i++)
		ret->n_full += keys[i] & PKEY_FULL ? 1 : 0;
}

static void read_gids(const struct gather *g, const char *rdma, struct facts_rdma *ret)
{
	struct gid_entry gids[GID_TABLE_MAX];
	size_t n;

	if (!sysroot_exists(g->root, RDMA_DIR "/%s/ports/%d/gids", rdma, ret->port) ||
	    devstate_gids(g->root, rdma, ret->port, gids, &n, NULL) < 0)
		return;
	ret->gids_known = true;
	ret->gids = arena_copy(g->arena, gids, n * sizeof(*gids));
	ret->n_gids = n;
}

static struct facts_rdma gather_rdma(const struct gather *g, const struct hw_rdma *rdma)
{
	const struct hw_port *port = first_port(rdma);
	struct facts_rdma ret = {
		.port = port ? port->number : 0,
		.node_guid = read_rdma(g, rdma->name, "node_guid"),
		.fw_ver = read_rdma(g, rdma->name, "fw_ver"),
		.board_id = read_rdma(g, rdma->name, "board_id"),
		.node = FACTS_UNKNOWN,
		.traffic_class = -1,
		.pkey0 = -1,
		.n_pkeys = -1,
		.n_full = -1,
	};

	/* A captured tree has no devices in its /dev. */
	if (g->live && g->own_dev && rdma->uverbs)
		ret.node = sysroot_exists(g->root, "dev/infiniband/%s", rdma->uverbs) ? FACTS_YES
										      : FACTS_NO;
	if (!ret.port)
		return ret;
	ret.traffic_class = read_traffic_class(g, rdma->name, ret.port);
	if (port->link == HW_LINK_IB)
		read_pkeys(g, rdma->name, &ret);
	if (rdma->pci < 0 || !g->inv->pci[rdma->pci].sriov_num)
		read_gids(g, rdma->name, &ret);
	return ret;
}

/* --- netdevs --- */

/* Without flags: the kernel answers a question for the carrier with EINVAL while the interface is
 * off; a capture of that is empty. */
static enum facts_answer read_up(const struct gather *g, const char *netdev)
{
	uint64_t flags;
	char carrier[8];
	int n;

	if (!sysroot_read_u64(g->root, 16, &flags, NET_DIR "/%s/flags", netdev))
		return flags & IFF_UP ? FACTS_YES : FACTS_NO;
	n = sysroot_read(g->root, carrier, sizeof(carrier), NET_DIR "/%s/carrier", netdev);
	if (n == -EINVAL || n == 0)
		return FACTS_NO;
	return n < 0 ? FACTS_UNKNOWN : FACTS_YES;
}

struct rep_search {
	const struct gather *g;
	struct facts_representor *v;
	size_t n, cap;
};

/* "pf0vf3" or "c1pf0vf3": the netdev stands for VF 3. */
static bool parse_representor(const char *port_name, int *ret_vf)
{
	const char *at = strstr(port_name, "pf");

	if (!at || (at != port_name && *port_name != 'c'))
		return false;
	at = strstr(at, "vf");
	return at && !str_to_int(at + 2, ret_vf) && *ret_vf >= 0;
}

/* The bridge that it is attached to is its master; Open vSwitch's is called ovs-system. A capture
 * has no such links. */
static int add_representor(void *arg, const char *netdev)
{
	struct rep_search *search = arg;
	const struct gather *g = search->g;
	enum facts_answer attached = g->live ? FACTS_NO : FACTS_UNKNOWN;
	char name[64];
	int vf;

	if (sysroot_read(g->root, name, sizeof(name), NET_DIR "/%s/phys_port_name", netdev) < 0 ||
	    !parse_representor(str_trim(name), &vf))
		return 0;
	if (!sysroot_link_name(g->root, name, sizeof(name), NET_DIR "/%s/master", netdev))
		attached = FACTS_YES;
	search->v = xgrow(search->v, &search->cap, search->n + 1, sizeof(*search->v));
	search->v[search->n++] = (struct facts_representor) {
		.vf = vf,
		.netdev = arena_strdup(g->arena, netdev),
		.attached = attached,
		.up = read_up(g, netdev),
	};
	return 0;
}

static int by_vf(const void *a, const void *b)
{
	const struct facts_representor *ra = a, *rb = b;

	return ra->vf != rb->vf ? ra->vf - rb->vf : strcmp(ra->netdev, rb->netdev);
}

static void find_representors(const struct gather *g, const struct hw_pci *f,
			      struct facts_netdev *ret)
{
	struct rep_search search = { .g = g };
	char dir[64], addr[BDF_STRLEN];

	snprintf(dir, sizeof(dir), "sys/bus/pci/devices/%s/net", bdf_format(f->bdf, addr));
	sysroot_each(g->root, dir, add_representor, &search);
	if (search.n > 1)
		qsort(search.v, search.n, sizeof(*search.v), by_vf);
	ret->reps = arena_copy(g->arena, search.v, search.n * sizeof(*search.v));
	ret->n_reps = search.n;
	free(search.v);
}

static const char *clause(const struct gather *g, const struct err *err)
{
	return arena_strdup(g->arena, err->msg);
}

static void ask_kernel(const struct gather *g, const struct hw_pci *f, struct facts_netdev *ret)
{
	struct err err = { 0 };

	ret->why_no_vfs = ret->why_no_dcb = !g->live ? NOT_LIVE : !f->netdev ? NO_NETDEV : NULL;
	if (ret->why_no_vfs)
		return;
	if (netlink_vfs(f->netdev, g->arena, &ret->vfs, &ret->n_vfs, &err) < 0)
		ret->why_no_vfs = clause(g, &err);
	else if (!ret->n_vfs)
		ret->why_no_vfs = "not reported by the driver";
	if (netlink_dcb(f->netdev, &ret->dcb, &err) < 0)
		ret->why_no_dcb = clause(g, &err);
}

/* A file for each priority; -1: not this driver's. */
static int read_ecn(const struct gather *g, const char *netdev, const char *end)
{
	int mask = -1;

	for (int priority = 0; priority < 8; priority++) {
		uint64_t on;

		if (sysroot_read_u64(g->root, 10, &on, NET_DIR "/%s/ecn/%s/enable/%d", netdev, end,
				     priority) < 0)
			continue;
		mask = mask < 0 ? 0 : mask;
		mask |= on ? 1 << priority : 0;
	}
	return mask;
}

/* The higher of the two counts. */
static int read_conf(const struct gather *g, const char *netdev, const char *file)
{
	static const char path[] = "proc/sys/net/ipv4/conf/%s/%s";
	uint64_t all, own;

	if (sysroot_read_u64(g->root, 10, &all, path, "all", file) < 0 ||
	    sysroot_read_u64(g->root, 10, &own, path, netdev, file) < 0)
		return -1;
	own = own > all ? own : all;
	return own > INT8_MAX ? -1 : (int)own;
}

/* Lines as "eth2 0000000A 00000000 0001 0 0 0 0000FFFF": interface, destination, gateway, flags,
 * three counts, mask. */
static void read_subnet(const struct gather *g, const char *netdev, struct facts_netdev *ret)
{
	_cleanup_close_ int fd = sysroot_openat(g->root, O_RDONLY | O_NONBLOCK, "proc/net/route");
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256], name[64];

	if (!file)
		return;
	fd = -1; /* the stream's */
	while (!ret->subnet_mask && fgets(line, sizeof(line), file)) {
		uint32_t to, gateway, mask;

		if (sscanf(line, "%63s %" SCNx32 " %" SCNx32 " %*s %*s %*s %*s %" SCNx32, name, &to,
			   &gateway, &mask) != 4 ||
		    strcmp(name, netdev) != 0 || gateway || mask == UINT32_MAX)
			continue;
		ret->subnet = to;
		ret->subnet_mask = mask;
	}
	fclose(file);
	if (!ret->subnet_mask)
		return;
	ret->arp_ignore = read_conf(g, netdev, "arp_ignore");
	ret->arp_announce = read_conf(g, netdev, "arp_announce");
	ret->rp_filter = read_conf(g, netdev, "rp_filter");
}

static struct facts_netdev gather_netdev(const struct gather *g, const struct hw_pci *f)
{
	struct facts_netdev ret = { .up = FACTS_UNKNOWN, .dcb = hw_dcb_unknown() };
	char text[64];
	uint64_t mtu;

	if (f->netdev) {
		if (!sysroot_read_u64(g->root, 10, &mtu, NET_DIR "/%s/mtu", f->netdev) &&
		    mtu <= INT32_MAX)
			ret.mtu = (int)mtu;
		ret.up = read_up(g, f->netdev);
		if (sysroot_read(g->root, text, sizeof(text), NET_DIR "/%s/address", f->netdev) > 0)
			ret.mac = arena_strdup(g->arena, str_trim(text));
		read_subnet(g, f->netdev, &ret);
	}
	if (!f->is_vf && f->sriov_num)
		find_representors(g, f, &ret);
	if (!f->is_vf)
		ask_kernel(g, f, &ret);
	ret.ecn_notify = f->netdev ? read_ecn(g, f->netdev, "roce_np") : -1;
	ret.ecn_react = f->netdev ? read_ecn(g, f->netdev, "roce_rp") : -1;
	return ret;
}

/* --- the host and we --- */

/* The file is the variable that the kernel goes by, also after it was changed at run time. */
static int read_exclusive(const struct gather *g)
{
	char text[8];
	bool exclusive;

	if (sysroot_read(g->root, text, sizeof(text), "sys/module/ib_core/parameters/netns_mode") >
		    0 &&
	    (*text == 'Y' || *text == 'N'))
		return *text == 'N';
	if (g->live && !netlink_rdma_exclusive(&exclusive, NULL))
		return exclusive;
	return -1;
}

static void read_own_limits(const struct gather *g, struct facts_net *net)
{
	static const char effective[] = "\nCapEff:";
	char text[4096] = "", *line;
	struct rlimit limit;
	struct statvfs shm;

	net->memlock = -2;
	net->shm = -1;
	net->ipc_lock = FACTS_UNKNOWN;
	if (!g->live)
		return;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		net->memlock = limit.rlim_cur > INT64_MAX ? -1 : (int64_t)limit.rlim_cur;
	if (!statvfs("/dev/shm", &shm))
		net->shm = (int64_t)(shm.f_blocks * shm.f_frsize);
	if (sysroot_read(g->root, text, sizeof(text), "proc/self/status") < 0)
		return;
	line = strstr(text, effective);
	if (line)
		net->ipc_lock = strtoull(line + strlen(effective), NULL, 16) >> CAP_IPC_LOCK & 1
					? FACTS_YES
					: FACTS_NO;
}

const struct facts_net *facts_net_gather(const struct sysroot *root, const struct hw_inventory *inv,
					 bool own_dev, struct arena *arena)
{
	const struct gather g = { root, inv, arena, sysroot_is_live(root), own_dev };
	struct facts_rdma *rdma = arena_array(arena, inv->n_rdma, sizeof(*rdma));
	struct facts_netdev *netdev = arena_array(arena, inv->n_pci, sizeof(*netdev));
	struct facts_net *net = arena_alloc(arena, sizeof(*net));

	for (size_t i = 0; i < inv->n_rdma; i++)
		rdma[i] = gather_rdma(&g, &inv->rdma[i]);
	for (size_t i = 0; i < inv->n_pci; i++) {
		netdev[i].up = FACTS_UNKNOWN;
		if (hw_is_nic(&inv->pci[i]))
			netdev[i] = gather_netdev(&g, &inv->pci[i]);
	}
	net->rdma = rdma;
	net->netdev = netdev;
	net->exclusive = read_exclusive(&g);
	read_own_limits(&g, net);
	return net;
}
