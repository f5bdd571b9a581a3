#include "daemon/scanner-internal.h"

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/links-internal.h"
#include "daemon/state-internal.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "netlink/netlink.h"
#include "pool/node.h"
#include "sysroot/sysroot.h"
#include "load/watch.h"

/* A burst of events (64 VFs appearing) is one scan: the first event arms the timer. */
#define SETTLE_MS 200
/* Scans that a lost link starts at once: at most this many within this time. */
#define HURRY_MAX      8
#define HURRY_EVERY_MS 10000

struct scanner {
	struct scanner_env env;
	struct config *cfg; /* of the newest node */
	struct node *node;  /* the newest one; NULL: none yet */
	struct links *links;
	struct qos *qos; /* NULL: not this machine's */

	struct watch_hw *hw; /* NULL: the kernel's events cannot be received */
	uv_poll_t hw_poll[2];
	uv_timer_t settle, links_timer;
	bool lost;	    /* a PF lost its link, by the events that are being read */
	int64_t hurried_ms; /* since when */
	unsigned n_hurried; /* scans were for a lost link */
};

/* --- a scan --- */

/* A sentence is logged when it is new, not at every scan. Devices that a pool misses on a node that
 * is not meant for it are not a warning. */
static void log_notes(const struct node *before, const struct node *now)
{
	void (*say)(const char *, const char *, ...) = pool_is_idle(now) ? log_info : log_warn;

	for (size_t i = 0; i < now->inv->n_notes; i++) {
		if (!before ||
		    !list_has(before->inv->notes, before->inv->n_notes, now->inv->notes[i]))
			log_warn("discover", "the node reports unexpected data reason=%s",
				 now->inv->notes[i]);
	}
	for (size_t i = 0; i < now->n_notes; i++) {
		if (!before || !list_has(before->notes, before->n_notes, now->notes[i]))
			say("pool", "the node does not match the configuration reason=%s",
			    now->notes[i]);
	}
}

static void log_ports(const struct node_pf *before, const struct node_pf *pf)
{
	for (size_t i = 0; i < pf->n_ports; i++) {
		int was = node_port_was_up(before, pf, &pf->ports[i]);

		if (was == 1 && pf->ports[i].up == 0)
			log_warn("link",
				 "the link of a PF of a pool is down pf=%s netdev=%s port=%d",
				 pf->address, pf->netdev ? pf->netdev : "", pf->ports[i].number);
		else if (was == 0 && pf->ports[i].up == 1)
			log_info("link",
				 "the link of a PF of a pool is up again pf=%s netdev=%s port=%d",
				 pf->address, pf->netdev ? pf->netdev : "", pf->ports[i].number);
	}
}

static void log_drivers(const struct node *before, const struct node *now)
{
	for (size_t i = 0; before && i < now->n_pools; i++) {
		const char *resource = now->pools[i].cfg->resource;
		const struct pool *old = node_pool(before, resource);
		const struct pool_dev *first = NULL;
		size_t n = old ? pool_lost_drivers(old, &now->pools[i], &first) : 0;

		if (n)
			log_warn(
				"pool",
				"VFs of the pool lost their driver resource=%s devices=%zu vf=%s reason=%s",
				resource, n, first->id, first->reason);
	}
}

static void log_pfs(const struct node *before, const struct node *now)
{
	for (size_t i = 0; i < now->n_pfs; i++) {
		const struct node_pf *pf = &now->pfs[i];
		const struct node_pf *old = before ? node_pf(before, pf->address) : NULL;

		if (pf->missing && pf->wanted && !(old && old->missing))
			log_warn("link", "a PF of a pool is missing pf=%s reason=%s", pf->address,
				 pf->missing);
		else if (!pf->missing && old && old->missing)
			log_info("link", "a PF of a pool is there again pf=%s", pf->address);
		if (old && !pf->missing)
			log_ports(old, pf);
	}
}

static void log_pools(const struct node *node)
{
	if (pool_is_idle(node))
		log_info("pool",
			 "this node has no VF with RDMA: nothing is offered until there is one");
	for (size_t i = 0; i < node->n_pools; i++) {
		size_t healthy = 0;

		for (size_t k = 0; k < node->pools[i].n_devs; k++)
			healthy += node->pools[i].devs[k].healthy;
		log_info("pool",
			 "the VFs of the pool were counted resource=%s devices=%zu healthy=%zu",
			 node->pools[i].cfg->resource, node->pools[i].n_devs, healthy);
	}
	for (size_t i = 0; i < node->n_shared; i++)
		log_info("pool",
			 "the HCAs of the pool were counted resource=%s devices=%zu shares=%u",
			 node->shared[i].cfg->resource, node->shared[i].n_devs,
			 node->shared[i].cfg->shares);
}

static int load_parts(struct scanner *s, struct node_parts *parts, struct node **ret,
		      struct err *err)
{
	parts->previous = s->node;
	parts->links = links_degraded(s->links, &parts->n_links);
	return load_node_of(s->env.root, parts, ret, err);
}

/* node is taken. */
static void take_scanned(struct scanner *s, struct node *node)
{
	bool is_new = !s->node || s->node->generation != node->generation;

	log_notes(s->node, node);
	if (is_new) {
		log_pfs(s->node, node);
		log_drivers(s->node, node);
		node_unref(s->node);
		s->node = node_ref(node);
		s->env.came(s->env.ctx);
		log_pools(node);
	}
	if (s->qos) /* asks the kernel of each PF: after the work that the kubelet waits for */
		qos_check(s->qos, node);
	node_unref(node);
}

/* A failed scan leaves the last good node in use: the kubelet must not lose devices to a passing
 * error. */
int scanner_scan(struct scanner *s, struct err *err)
{
	int64_t began_ns = clock_mono_ns();
	struct node_parts parts = { .cfg = s->cfg };
	struct node *node;
	int r;

	/* The ledger, whose strings its seeds are, goes to the rpc thread with the first node. */
	parts.n_seeds = s->env.state->n_seeds;
	parts.seeds =
		s->node ? unlisted_seeds(s->env.unlisted, &parts.n_seeds) : s->env.state->seeds;
	r = load_parts(s, &parts, &node, err);
	s->env.scanned(s->env.ctx, clock_mono_ns() - began_ns, r == 0);
	if (r < 0)
		return r;
	take_scanned(s, node);
	return 0;
}

static void rescan(struct scanner *s)
{
	struct err err = { 0 };

	if (scanner_scan(s, &err) < 0)
		log_error("discover",
			  "rescan failed; the previous inventory of the node stays in use error=%s",
			  err.msg);
}

/* Degraded links become part of the node. */
static void check_links(struct scanner *s)
{
	if (s->node && links_check(s->links, s->node, clock_mono_ms(), clock_wall_ms()))
		rescan(s);
}

void scanner_again(struct scanner *s)
{
	rescan(s);
	check_links(s);
	s->env.looked(s->env.ctx);
}

int scanner_adopt(struct scanner *s, struct config *cfg, const struct node_seed *held, size_t n,
		  struct err *err)
{
	struct node_parts parts = { .cfg = cfg, .held_only = true, .seeds = held, .n_seeds = n };
	struct config *before = s->cfg;
	struct node *node;
	int r = load_parts(s, &parts, &node, err);

	if (r < 0) {
		config_free(cfg);
		return r;
	}
	s->cfg = cfg;
	take_scanned(s, node);
	config_free(before);
	return 0;
}

void scanner_replace(struct scanner *s, struct config *cfg)
{
	config_free(s->cfg);
	s->cfg = cfg;
	scanner_forget(s);
}

void scanner_forget(struct scanner *s)
{
	node_unref(STEAL(s->node));
}

struct node *scanner_node(const struct scanner *s)
{
	return s->node;
}

struct config *scanner_config(const struct scanner *s)
{
	return s->cfg;
}

/* --- when --- */

static void on_links(uv_timer_t *timer)
{
	check_links(timer->data);
}

static void on_settled(uv_timer_t *timer)
{
	scanner_again(timer->data);
}

/* The interface of a PF whose link was up, as far as we know? Those of containers come and go all
 * the time. */
static void on_down(void *arg, const char *netdev)
{
	struct scanner *s = arg;

	for (size_t i = 0; s->node && i < s->node->inv->n_pci; i++) {
		const struct hw_pci *fn = &s->node->inv->pci[i];

		s->lost |= !fn->is_vf && fn->carrier == 1 && str_eq(fn->netdev, netdev);
	}
}

/* A lost link is reported to the kubelet at once; bursts of new devices wait until they end. After
 * a loss it is scanned once more: an RDMA port may show it later than its interface. */
static void on_hw(uv_poll_t *poll, int status, int events)
{
	struct scanner *s = poll->data;
	int64_t now = clock_mono_ms();

	s->lost = false;
	if (!watch_hw_drain(s->hw, (int)(poll - s->hw_poll), on_down, s))
		return;
	if (!uv_is_active((uv_handle_t *)&s->settle))
		uv_timer_start(&s->settle, on_settled, SETTLE_MS, 0);
	if (!s->lost)
		return;
	/* A link that flaps is followed at the pace of other changes. */
	if (now - s->hurried_ms >= HURRY_EVERY_MS) {
		s->hurried_ms = now;
		s->n_hurried = 0;
	}
	if (s->n_hurried++ < HURRY_MAX)
		rescan(s);
}

void scanner_tick(struct scanner *s)
{
	bool hears = s->hw && watch_hw_fd(s->hw, 0) >= 0 && watch_hw_fd(s->hw, 1) >= 0;

	if (!s->node || !pool_is_idle(s->node) || !hears)
		scanner_again(s);
}

static void watch_events(struct scanner *s, unsigned rescan_seconds)
{
	struct err err = { 0 };

	if (watch_hw_open(&s->hw, &err) < 0 || err.code)
		log_warn("watch", "changes are found by the scan seconds=%u error=%s",
			 rescan_seconds, err.msg);
	for (int i = 0; s->hw && i < 2; i++) {
		if (watch_hw_fd(s->hw, i) < 0)
			continue;
		uv_poll_init(s->env.loop, &s->hw_poll[i], watch_hw_fd(s->hw, i));
		s->hw_poll[i].data = s;
		uv_poll_start(&s->hw_poll[i], UV_READABLE, on_hw);
	}
}

struct scanner *scanner_new(const struct scanner_env *env, struct config *cfg)
{
	struct scanner *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	s->cfg = config_ref(cfg);
	s->links = links_new(env->root, env->run_dir, clock_mono_ms());
	if (sysroot_is_live(env->root))
		s->qos = qos_new(netlink_dcb);
	uv_timer_init(env->loop, &s->settle);
	uv_timer_init(env->loop, &s->links_timer);
	s->settle.data = s->links_timer.data = s;
	return s;
}

void scanner_keep_links(struct scanner *s)
{
	links_keep(s->links);
}

void scanner_watch(struct scanner *s, unsigned rescan_seconds)
{
	uv_timer_start(&s->links_timer, on_links, 0, LINKS_EVERY_MS);
	if (sysroot_is_live(s->env.root))
		watch_events(s, rescan_seconds);
}

void scanner_free(struct scanner *s)
{
	if (!s)
		return;
	watch_hw_close(s->hw);
	links_free(s->links);
	qos_free(s->qos);
	node_unref(s->node);
	config_free(s->cfg);
	free(s);
}
