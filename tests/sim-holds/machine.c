/* Processes, cgroups, network namespaces and open RDMA devices; the runtime that makes and ends
 * containers.
 */
#include "sim.h"

#include <string.h>

bool pod_is_active(const struct pod *p)
{
	return p->known && !p->rejected && !p->over;
}

/* Deleted, forgotten, rejected while it ran. */
bool pod_has_ends(const struct pod *p)
{
	return p->there && (p->dying || (p->known && (p->deleting || p->rejected)));
}

bool pod_lives(const struct pod *p)
{
	bool lives = false;

	for (unsigned c = 0; c < CTRS; c++)
		lives |= p->c[c].alive;
	return lives;
}

/* Its container started while the checkpoint could not be read: when the kubelet has forgotten it,
 * nothing shows that it lives but what it opens. README.md: not in this world. */
bool pod_is_nameless(const struct world *w, int pod)
{
	for (unsigned vf = 0; w->cfg.names_once && vf < w->n_vfs; vf++) {
		const struct record *map = &w->s.map[vf];

		if (map->there && map->who.uid < 0 && map->who.name == w->pods[pod].name)
			return true;
	}
	return false;
}

set pod_devs(const set (*devs)[CTRS], int pod)
{
	set s = 0;

	for (unsigned c = 0; c < CTRS; c++)
		s |= devs[pod][c];
	return s;
}

set pod_had(const struct pod *p)
{
	set s = p->had;

	for (unsigned c = 0; c < CTRS; c++)
		s |= p->c[c].had;
	return s;
}

set used_by_live(const struct world *w)
{
	set s = 0;

	for (unsigned p = 0; p < w->n_pods; p++) {
		for (unsigned c = 0; c < CTRS; c++)
			s |= w->pods[p].c[c].alive ? w->pods[p].c[c].vfs : 0;
	}
	return s;
}

bool has_processes(const struct pod *p)
{
	return p->sandbox || pod_lives(p);
}

set had_by_running(const struct world *w)
{
	set s = 0;

	for (unsigned p = 0; p < w->n_pods; p++)
		s |= has_processes(&w->pods[p]) ? pod_had(&w->pods[p]) | w->pods[p].away : 0;
	return s;
}

/* What the cgroup of this pod shows. */
enum holds_cgroup machine_cgroup(const struct world *w, int uid)
{
	const struct pod *p = &w->pods[uid < 0 ? 0 : uid];

	if (uid < 0 || w->cgroups_unreadable || w->scan_incomplete)
		return HOLDS_CGROUP_UNKNOWN;
	if (pod_lives(p))
		return HOLDS_CGROUP_RUNS;
	return p->sandbox ? HOLDS_CGROUP_SANDBOX : HOLDS_CGROUP_EMPTY;
}

void machine_look(const struct world *w, unsigned vf, int uid, struct holds_facts *ret)
{
	set bit = 1u << vf;

	*ret = (struct holds_facts) { .cgroup = HOLDS_CGROUP_UNKNOWN };
	if (w->scan_incomplete) {
		ret->unreadable = "/proc/4711/fd cannot be read: Permission denied";
		return;
	}
	if (w->strange & bit && w->strangers_open)
		ret->open = "process 4714 has its RDMA device open";
	else if (w->strange & bit)
		ret->away = "its RDMA device is in a container's network namespace";
	for (unsigned p = 0; p < w->n_pods; p++) {
		const struct pod *pod = &w->pods[p];

		if (pod->away & bit)
			ret->away = "its netdev is in the network namespace of process 4712";
		for (unsigned c = 0; c < CTRS; c++) {
			if (pod->c[c].alive && (pod->c[c].open & bit))
				ret->open = "process 4713 has its RDMA device open";
		}
	}
	if (uid < 0)
		return;
	ret->uid = uid_name(uid);
	if (!w->cgroups_unreadable)
		ret->cgroup = has_processes(&w->pods[uid]) ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

void ctr_open(struct world *w, int pod, int c, uint32_t r)
{
	struct ctr *ctr = &w->pods[pod].c[c];

	ctr->open |= r % 4 ? ctr->vfs : some_of(ctr->vfs, 1, r);
}

/* Its processes end. An init container that is done is not started again. */
void ctr_exit(struct world *w, int pod, int c, bool done)
{
	struct pod *p = &w->pods[pod];
	struct ctr *ctr = &p->c[c];

	ctr->alive = false;
	ctr->vfs = ctr->open = 0;
	ctr->state = ctr->init && done ? CTR_DONE : CTR_WAITS;
	ctr->pool = 0;
}

void pod_stop(struct world *w, int pod)
{
	for (int c = 0; c < CTRS; c++) {
		struct ctr *ctr = &w->pods[pod].c[c];

		if (ctr->alive)
			ctr_exit(w, pod, c, false);
		if (ctr->state == CTR_CALLED)
			us_cancel(w, pod, c);
		ctr->state = CTR_WAITS;
	}
}

static void sandbox_ends(struct pod *p)
{
	p->sandbox = p->ready = false;
	p->away = p->had = 0;
	for (unsigned c = 0; c < CTRS; c++) {
		p->c[c].started = false;
		p->c[c].had = 0;
	}
}

void pod_teardown(struct world *w, int pod)
{
	struct pod *p = &w->pods[pod];

	pod_stop(w, pod);
	sandbox_ends(p);
	if (!p->known) { /* its claims are the reconcile loop's */
		p->dying = false;
		return;
	}
	if (p->claims && !p->released && !kubelet_unprepare(w, pod))
		return;
	p->dying = false;
	p->over = true; /* the kubelet knows that it has ended */
	if (p->deleting)
		p->in_api = false;
}

/* Devices of all its containers, as the checkpoint has them: what CNI plugins move. Of late pools
 * the slots that PodResources shows, for whose VFs they ask. */
static set moved_by(const struct world *w, int pod, bool late)
{
	set s = 0;

	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		for (unsigned c = 0; c < CTRS; c++) {
			if (w->cfg.pools[i].moves && w->cfg.pools[i].late == late &&
			    !(late && w->pods[pod].c[c].init))
				s |= w->k.devs[pod][c] & pool_set(w, i);
		}
	}
	return s;
}

/* A CNI plugin fails, and is called again, while the device is in another namespace. */
bool can_sandbox(const struct world *w, int pod)
{
	const struct pod *p = &w->pods[pod];
	set moved;

	if (!w->k.up || !pod_is_active(p) || !p->admitted || p->deleting || p->dying ||
	    p->sandbox || (p->claims && !p->ready))
		return false;
	moved = moved_by(w, pod, false);
	for (unsigned i = 0; i < w->n_pods; i++) {
		if (w->pods[i].away & moved)
			return false;
	}
	return true;
}

void pod_sandbox(struct world *w, int pod)
{
	struct pod *p = &w->pods[pod];
	set moved = moved_by(w, pod, false);

	if (!us_cni_add(w, pod, &moved))
		return;
	p->sandbox = true;
	p->away = moved;
	/* For slots it is but a number of VFs, other ones than those that are away. */
	p->had = pod_devs(w->k.devs, pod) & ~moved_by(w, pod, true);
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		set mine = pool_set(w, i);

		if (w->cfg.pools[i].late && w->cfg.pools[i].moves)
			p->had = (p->had & ~mine) | some_of(mine & ~moved, count(p->had & mine), 0);
	}
}

/*
 * Between PreStartContainer and CreateContainer lies a millisecond; a container whose pod is
 * deleted by force in it is still created.
 */
bool can_create(const struct world *w, int pod, int c)
{
	const struct pod *p = &w->pods[pod];

	if (p->c[c].state != CTR_CREATES || !p->sandbox)
		return false;
	if (w->k.up && p->known)
		return true;
	return w->now_ms - p->c[c].ok_ms <= 1000;
}

/* Of the container's other pools, to which the kubelet goes after ours. */
#define PRESTART_TIMEOUT_MS 30000

/* What CDI makes of the slots: the VF in the spec, by then. */
static bool resolve(const struct world *w, set slots, set *ret)
{
	*ret = 0;
	for (unsigned s = 0; s < VFS_MAX; s++) {
		if (!(slots >> s & 1))
			continue;
		if (!w->s.spec[s].there)
			return false;
		*ret |= 1u << w->s.spec[s].vf;
	}
	return true;
}

void ctr_create(struct world *w, int pod, int c)
{
	struct ctr *ctr = &w->pods[pod].c[c];
	set got = 0;

	if (w->now_ms - ctr->ok_ms >= PRESTART_TIMEOUT_MS) {
		say(w, "PreStartContainer of another pool of pod %d: deadline exceeded", pod);
		ctr->state = CTR_WAITS;
		ctr->pool = 0;
		return;
	}
	for (unsigned i = 0; i < w->cfg.n_pools; i++) {
		set ids = ctr->ids & pool_set(w, i), vfs = ids;

		if (w->cfg.pools[i].late && !resolve(w, ids, &vfs)) {
			say(w, "CreateContainer of pod %d: unresolvable CDI device", pod);
			ctr->state = CTR_WAITS;
			ctr->pool = 0;
			return;
		}
		got |= vfs;
	}
	memset(ctr->of, 0, sizeof(ctr->of));
	ctr->unseen = 0;
	for (set s = claim_slots(w, ctr->claims); s; s &= s - 1) {
		const struct record *spec = &w->s.spec[lowest(s)];

		if (!spec->there) {
			say(w, "CreateContainer of pod %d: unresolvable CDI device", pod);
			ctr->state = CTR_WAITS;
			ctr->pool = 0;
			return;
		}
		got |= 1u << spec->vf;
		ctr->of[spec->vf] = (uint8_t)(1 + claim_of((unsigned)lowest(s)));
	}
	ctr->state = CTR_RUNS;
	ctr->alive = true;
	ctr->vfs = got;
	ctr->had = (ctr->had & ~w->sick) |
		   got; /* what was sick when it restarted has no more to do with it */
	ctr->started = true;
	ctr->open = 0;
	say(w, "pod %d (%s) container %d runs with VFs %#x", pod, pod_name(w, pod), c, got);
	note_unseen(w, pod, c);
	check_created(w, pod, c);
}

/* All processes, /run, cgroups and namespaces are gone; /var is there. */
void node_reboot(struct world *w)
{
	kubelet_kill(w);
	if (w->u.up)
		us_kill(w);
	for (unsigned p = 0; p < w->n_pods; p++) {
		struct pod *pod = &w->pods[p];

		for (int c = 0; c < CTRS; c++) {
			pod->c[c].alive = false;
			pod->c[c].vfs = pod->c[c].open = 0;
			pod->c[c].state = CTR_WAITS;
			pod->c[c].pool = 0;
		}
		sandbox_ends(pod);
		pod->dying = false;
	}
	memset(w->s.spec, 0, sizeof(w->s.spec));
	memset(w->s.map, 0, sizeof(w->s.map));
	for (unsigned c = 0; c < w->n_claims; c++)
		w->claims[c].kept =
			false; /* each sandbox is made anew, and its claims are prepared */
	w->boot_ms = w->now_ms;
}
