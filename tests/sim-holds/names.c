/* Names of things, and choices out of a number. */
#include "sim.h"

#include <string.h>

static const char *const vfs[VFS_MAX] = { "0000:18:00.1", "0000:18:00.2", "0000:18:00.3",
					  "0000:18:00.4", "0000:9a:00.1", "0000:9a:00.2",
					  "0000:9a:00.3", "0000:9a:00.4" };
static const char *const rdmas[VFS_MAX] = { "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4",
					    "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8" };
#define CLAIM(n) "0b1a6e2c-55d0-4f0b-9d7e-00000000000" #n
#define SLOTS(n) "rdma_vf-c" CLAIM(n) "-0", "rdma_vf-c" CLAIM(n) "-1", "rdma_vf-c" CLAIM(n) "-2"
static const char *const slots[SLOTS_MAX] = { "rdma_vf-n0-0", "rdma_vf-n0-1", "rdma_vf-n0-2",
					      "rdma_vf-n0-3", "rdma_vf-n1-0", "rdma_vf-n1-1",
					      "rdma_vf-n1-2", "rdma_vf-n1-3", SLOTS(0),
					      SLOTS(1),	      SLOTS(2),	      SLOTS(3),
					      SLOTS(4),	      SLOTS(5),	      SLOTS(6),
					      SLOTS(7) };
static const char *const claims[CLAIMS_MAX] = { CLAIM(0), CLAIM(1), CLAIM(2), CLAIM(3),
						CLAIM(4), CLAIM(5), CLAIM(6), CLAIM(7) };
static const char *const pods[PODS_MAX] = { "web-0", "web-1", "job-a", "job-b", "job-c", "job-d",
					    "job-e", "job-f", "job-g", "job-h", "job-i", "job-j",
					    "job-k", "job-l", "job-m", "job-n" };
static const char *const uids[PODS_MAX] = { "uid-00", "uid-01", "uid-02", "uid-03",
					    "uid-04", "uid-05", "uid-06", "uid-07",
					    "uid-08", "uid-09", "uid-10", "uid-11",
					    "uid-12", "uid-13", "uid-14", "uid-15" };

const char *vf_name(unsigned vf)
{
	return vfs[vf];
}

const char *slot_name(unsigned slot)
{
	return slots[slot];
}

const char *rdma_name(unsigned vf)
{
	return rdmas[vf];
}

const char *resource_name(unsigned pool)
{
	return pool ? "rdma.example/b" : "rdma.example/a";
}

const char *pod_name(const struct world *w, int pod)
{
	return pods[w->pods[pod].name];
}

const char *uid_name(int pod)
{
	return uids[pod];
}

static const char *const containers[CTR_KINDS] = { "", "init", "main", "side", "other" };

/* Of two app containers the first is "main". */
enum ctr_kind ctr_kind(const struct world *w, int pod, int c)
{
	const struct ctr *v = w->pods[pod].c;

	if (v[c].init || v[c].side)
		return v[c].init ? CTR_INIT : CTR_SIDE;
	return c && !v[c - 1].init && !v[c - 1].side ? CTR_OTHER : CTR_MAIN;
}

const char *ctr_name(const struct world *w, int pod, int c)
{
	return containers[ctr_kind(w, pod, c)];
}

static int number_of(const char *name, const char *const *table, int n)
{
	for (int i = 0; name && i < n; i++) {
		if (!strcmp(name, table[i]))
			return i;
	}
	return -1;
}

int vf_number(const char *vf)
{
	return number_of(vf, vfs, VFS_MAX);
}

int slot_number(const char *slot)
{
	return number_of(slot, slots, SLOTS_MAX);
}

const char *claim_name(unsigned claim)
{
	return claims[claim];
}

int claim_number(const char *uid)
{
	return number_of(uid, claims, CLAIMS_MAX);
}

int claim_of(unsigned slot)
{
	return slot < VFS_MAX ? -1 : (int)(slot - VFS_MAX) / CLAIM_VFS;
}

set claim_slots(const struct world *w, unsigned of)
{
	set s = 0;

	for (unsigned c = 0; c < w->n_claims; c++)
		s |= of >> c & 1 ? ((1u << w->claims[c].n) - 1) << (VFS_MAX + c * CLAIM_VFS) : 0;
	return s;
}

int uid_number(const char *uid)
{
	return number_of(uid, uids, PODS_MAX);
}

struct who who_of(const struct ledger_owner *o)
{
	struct who who = { (int8_t)number_of(o->pod, pods, PODS_MAX), (int8_t)uid_number(o->uid),
			   0 };

	if (o->container)
		who.container = (int8_t)number_of(o->container, containers, CTR_KINDS);
	return who;
}

struct ledger_owner owner_of(struct who who)
{
	return (struct ledger_owner) { who.name < 0 ? NULL : "default",
				       who.name < 0 ? NULL : pods[who.name],
				       who.uid < 0 ? "" : uids[who.uid], containers[who.container],
				       NULL };
}

struct holds_now now_of(const struct world *w)
{
	return (struct holds_now) { w->now_ms - w->boot_ms, 1790000000000 + w->now_ms };
}

set pool_set(const struct world *w, unsigned pool)
{
	return ((1u << w->cfg.pools[pool].n) - 1) << w->cfg.pools[pool].first;
}

unsigned pool_of(const struct world *w, unsigned id)
{
	return w->cfg.n_pools > 1 && id >= w->cfg.pools[1].first;
}

int lowest(set s)
{
	return s ? __builtin_ctz(s) : -1;
}

unsigned count(set s)
{
	return (unsigned)__builtin_popcount(s);
}

unsigned mix(uint32_t r, unsigned salt)
{
	uint64_t x = ((uint64_t)r << 8 | salt) * 0x9e3779b97f4a7c15u;

	x ^= x >> 29;
	return (unsigned)((x * 0xbf58476d1ce4e5b9u) >> 40);
}

set some_of(set s, unsigned n, uint32_t r)
{
	set ret = 0;

	for (unsigned i = 0; i < n && s; i++) {
		unsigned k = mix(r, i) % count(s);
		set rest = s;

		while (k--)
			rest &= rest - 1;
		ret |= rest & -rest;
		s &= ~ret;
	}
	return ret;
}
