/*
 * The kubelet's device manager, pod manager and pod workers, as docs/design/kubelet.md §1 and §2
 * have them: one admission at a time, resource by resource; `allocated` apart from `devs`, and
 * rebuilt from it whenever a pod went (fact 4); a checkpoint once a container.
 */
#include "sim.h"

#include <string.h>

int pod_create_as(struct world *w, uint8_t name, bool fixed, const struct ctr *c, unsigned n)
{
	struct pod *p = &w->pods[w->n_pods];

	if (w->n_pods == PODS_MAX)
		return -1;
	*p = (struct pod) { .there = true, .name = name, .fixed = fixed, .in_api = true };
	for (unsigned i = 0; i < n; i++) {
		p->c[i] = c[i];
		p->c[i].there = true;
	}
	/* A static pod comes with its file; another one over the API server. */
	p->known = w->k.up && (fixed || (w->k.sources && w->api));
	return (int)w->n_pods++;
}

static bool is_taken(const struct world *w, uint8_t name)
{
	for (unsigned p = 0; p < w->n_pods; p++) {
		if (w->pods[p].name == name && (w->pods[p].in_api || w->pods[p].known))
			return true;
	}
	return false;
}

static void want(const struct world *w, struct ctr *c, uint32_t r)
{
	unsigned pool = mix(r, 1) % w->cfg.n_pools, other = 1 - pool;

	if (w->cfg.pools[pool].dra && w->cfg.n_pools > 1 && !w->cfg.mixed && mix(r, 12) % 2) {
		pool = other;
		other = 1 - pool;
	}
	if (w->cfg.pools[pool].dra && !(w->cfg.mixed && mix(r, 13) % 2))
		return;
	c->want[pool] = (uint8_t)(1 + (mix(r, 2) % 3 ? 0 : mix(r, 3) % w->cfg.pools[pool].n));
	if (w->cfg.n_pools > 1 && !(mix(r, 4) % 4) && !w->cfg.pools[other].dra)
		c->want[other] = 1;
}

/*
 * One container; an ordinary init container before it, of the same size or another; a restartable
 * one before both, after the first, or before the other alone; two.
 */
static unsigned containers(const struct world *w, struct ctr *c, uint32_t shape)
{
	static const char *const shapes[] = { "sia", "isa", "sa", "aa" };
	const char *v = mix(shape, 5) % 3 ? "a" : "ia";
	unsigned n;

	if (mix(shape, 11) % 3 == 1)
		v = shapes[mix(shape, 9) % (sizeof(shapes) / sizeof(shapes[0]))];
	for (n = 0; v[n]; n++) {
		c[n].init = v[n] == 'i';
		c[n].side = v[n] == 's';
		want(w, &c[n], v[n + 1] && mix(shape, 6) % 2 ? shape ^ 0x5555u * (n + 1) : shape);
	}
	return n;
}

int pod_create(struct world *w, uint32_t shape)
{
	struct ctr c[CTRS] = { { 0 } };
	uint8_t name = (uint8_t)(mix(shape, 0) % 2); /* a StatefulSet's, for choice */
	unsigned n;
	int pod;

	if (w->cfg.names_once || is_taken(w, name) || !(mix(shape, 10) % 3))
		name = (uint8_t)(2 + w->n_pods % (PODS_MAX - 2));
	if (w->n_pods == PODS_MAX || is_taken(w, name))
		return -1;
	n = containers(w, c, shape);
	pod = pod_create_as(w, name, !(mix(shape, 7) % 4), c, n);
	claims_of_shape(w, &w->pods[pod], shape);
	return pod;
}

static void let_go(struct world *w, int pod)
{
	struct pod *p = &w->pods[pod];

	if (p->known && (p->sandbox || pod_lives(p)))
		p->dying = true;
	p->known = false;
	for (int c = 0; c < CTRS; c++) {
		if (p->c[c].state == CTR_CALLED) {
			us_cancel(w, pod, c);
			p->c[c].state = CTR_WAITS;
		}
	}
}

bool can_delete(const struct world *w, int pod)
{
	return w->pods[pod].there && w->pods[pod].in_api && w->k.pod != pod &&
	       (w->api || w->pods[pod].fixed);
}

void pod_delete(struct world *w, int pod, bool force)
{
	struct pod *p = &w->pods[pod];
	bool seen = w->k.up && (p->fixed || w->k.sources);

	p->deleting = true;
	if (force || p->fixed) { /* a static pod leaves the pod manager at once, too */
		p->in_api = false;
		if (seen)
			let_go(w, pod);
	} else if (p->over) {
		p->in_api = p->known = false;
	}
}

/* --- its own life --- */

void kubelet_kill(struct world *w)
{
	kubelet_unplug(w);
	w->k.up = w->k.sources = w->k.registered = false;
	w->k.pod = -1;
	dra_kubelet_killed(w);
	for (unsigned p = 0; p < w->n_pods; p++) {
		w->pods[p].known = w->pods[p].admitted = false;
		for (int c = 0; c < CTRS; c++) {
			struct ctr *ctr = &w->pods[p].c[c];

			if (ctr->state == CTR_CALLED)
				us_cancel(w, (int)p, c);
			if (ctr->state == CTR_CALLED || ctr->state == CTR_CREATES) {
				ctr->state = CTR_WAITS;
				ctr->pool = 0;
			}
		}
	}
}

static set all_devs(const struct world *w)
{
	set s = 0;

	for (unsigned p = 0; p < w->n_pods; p++)
		s |= pod_devs(w->k.devs, (int)p);
	return s;
}

void kubelet_start(struct world *w)
{
	struct kubelet *k = &w->k;

	k->up = true;
	k->epoch++;
	k->healthy = 0;
	memcpy(k->devs, k->file, sizeof(k->devs));
	k->allocated = all_devs(w);
	dra_kubelet_started(w);
	for (unsigned p = 0; p < w->n_pods; p++) {
		if (w->pods[p].fixed && w->pods[p].in_api)
			w->pods[p].known = true;
	}
}

/* The API server has said which pods there are. Containers of pods that it has not are ended. */
void kubelet_sync(struct world *w)
{
	w->k.sources = true;
	for (unsigned p = 0; p < w->n_pods; p++) {
		struct pod *pod = &w->pods[p];

		if (pod->in_api)
			pod->known = true;
		else if (!pod->known && (pod->sandbox || pod_lives(pod)))
			pod->dying = true;
	}
}

/* --- devices --- */

/* UpdateAllocatedDevices: whatever is in flight is not in podDevices, and its reservation is lost.
 */
void kubelet_gc(struct world *w)
{
	bool went = false;

	if (!w->k.sources)
		return;
	for (unsigned p = 0; p < w->n_pods; p++) {
		if (pod_is_active(&w->pods[p]) || !pod_devs(w->k.devs, (int)p))
			continue;
		memset(w->k.devs[p], 0, sizeof(w->k.devs[p]));
		went = true;
	}
	if (went)
		w->k.allocated = all_devs(w);
}

static void write_checkpoint(struct world *w)
{
	memcpy(w->k.file, w->k.devs, sizeof(w->k.file));
}

void kubelet_list(struct world *w, set healthy)
{
	w->k.healthy = healthy;
	w->k.registered = true;
	write_checkpoint(w);
	check_healthy(w, healthy);
}

/* Every device is unhealthy then; containers that start get errEndpointStopped, and wait. */
void kubelet_unplug(struct world *w)
{
	w->k.pluggedin = false;
	w->k.healthy = 0;
	for (unsigned p = 0; p < w->n_pods; p++) {
		for (int c = 0; c < CTRS; c++) {
			if (w->pods[p].c[c].state != CTR_CALLED)
				continue;
			us_cancel(w, (int)p, c);
			w->pods[p].c[c].state = CTR_WAITS;
			w->pods[p].c[c].pool = 0;
		}
	}
}

/* --- admission --- */

static int next_pod(const struct world *w)
{
	if (w->k.pod >= 0)
		return w->k.pod;
	for (unsigned p = 0; p < w->n_pods; p++) {
		if (pod_is_active(&w->pods[p]) && !w->pods[p].admitted && !w->pods[p].deleting)
			return (int)p;
	}
	return -1;
}

bool can_admit(const struct world *w)
{
	return w->k.up && next_pod(w) >= 0;
}

static void reject(struct world *w, const char *why)
{
	say(w, "pod %d is rejected: %s", w->k.pod, why);
	w->pods[w->k.pod].rejected = true;
	w->k.pod = -1;
}

void kubelet_failed(struct world *w)
{
	if (w->k.pod < 0)
		return;
	w->k.allocated = all_devs(w);
	reject(w, "the call failed");
}

/* Those it has already: after a restart of the kubelet. False: it is rejected. */
static bool keep(struct world *w, const struct ctr *c, set have)
{
	if (c->alive)
		return true;
	if (!w->k.registered || !w->k.pluggedin)
		reject(w, "the resource is not registered");
	else if (have & ~w->k.healthy)
		reject(w, "previously allocated devices are no longer healthy");
	else
		return true;
	return false;
}

static void begin(struct world *w)
{
	w->k.pod = next_pod(w);
	w->k.c = w->k.pool = 0;
	w->k.reuse = 0;
	w->k.step = ADMIT_RESERVE;
}

static void next_pool(struct world *w)
{
	w->k.step = ADMIT_RESERVE;
	if (++w->k.pool == w->cfg.n_pools)
		w->k.step = ADMIT_WRITE;
}

static void reserve(struct world *w, uint32_t r)
{
	struct kubelet *k = &w->k;
	const struct ctr *c = &w->pods[k->pod].c[k->c];
	set mine = pool_set(w, k->pool), have = k->devs[k->pod][k->c] & mine, available;
	unsigned needed = c->want[k->pool];

	if (!k->pool)
		kubelet_gc(w);
	if (!needed) {
		next_pool(w);
		return;
	}
	if (have) {
		k->reuse = c->init ? k->reuse | have : k->reuse & ~have;
		if (keep(w, c, have))
			next_pool(w);
		return;
	}
	if (!k->pluggedin || !(k->healthy & mine)) {
		reject(w, "no healthy devices present");
		return;
	}
	k->ids = some_of(k->reuse & mine, needed, r);
	k->allocated |= k->ids;
	available = k->healthy & mine & ~k->allocated;
	if (count(available) + count(k->ids) < needed) {
		reject(w, "requested number of devices unavailable");
		return;
	}
	if (count(k->ids) < needed) { /* a wish; what is missing in it is taken at random */
		set wish = us_preferred(w, k->pool, available | k->ids, k->ids, needed, r);

		wish &= available;
		k->ids |= some_of(wish, needed - count(k->ids), r);
		k->ids |= some_of(available & ~k->ids, needed - count(k->ids), r);
	}
	k->allocated |= k->ids;
	k->step = ADMIT_ALLOCATE;
}

static void allocate(struct world *w, uint32_t r)
{
	struct kubelet *k = &w->k;

	if (!k->pluggedin) {
		kubelet_failed(w);
		return;
	}
	us_allocate(w, k->pool, k->ids, k->pod, (int)k->c, r);
	k->step = ADMIT_INSERT;
}

/* A moment after the answer: a List between them does not show it. */
static void insert(struct world *w)
{
	struct kubelet *k = &w->k;
	int pod = k->pod;

	k->devs[pod][k->c] |= k->ids;
	if (w->pods[pod].c[k->c].init)
		k->reuse |= k->ids;
	else
		k->reuse &= ~k->ids;
	next_pool(w);
}

void kubelet_admit(struct world *w, uint32_t r)
{
	struct kubelet *k = &w->k;

	if (k->pod < 0)
		begin(w);
	if (k->step == ADMIT_RESERVE) {
		reserve(w, r);
	} else if (k->step == ADMIT_ALLOCATE) {
		allocate(w, r);
	} else if (k->step == ADMIT_INSERT) {
		insert(w);
	} else {
		write_checkpoint(w);
		k->step = ADMIT_RESERVE;
		k->pool = 0;
		if (++k->c == CTRS || !w->pods[k->pod].c[k->c].there) {
			w->pods[k->pod].admitted = true;
			k->pod = -1;
		}
	}
}

/* --- PodResources --- */

/* List, as it is made now: the pods that are shown, and devices of containers that are no ordinary
 * init containers. */
void kubelet_answer(const struct world *w, struct answer *ret)
{
	ret->here = true;
	ret->pods = 0;
	for (unsigned p = 0; p < w->n_pods; p++) {
		const struct pod *pod = &w->pods[p];

		if (!(w->cfg.active_only ? pod_is_active(pod) : pod->known))
			continue;
		ret->pods |= 1u << p;
		for (int c = 0; c < CTRS; c++)
			ret->devs[p][c] = pod->c[c].there && !pod->c[c].init ? w->k.devs[p][c] : 0;
	}
}

/* --- the pod worker --- */

/* Ordinary init containers before it are done, and restartable ones have started. */
bool kubelet_is_next(const struct pod *p, int c)
{
	for (int i = 0; i < c; i++) {
		if ((p->c[i].init && p->c[i].state != CTR_DONE) ||
		    (p->c[i].side && !p->c[i].started))
			return false;
	}
	return true;
}

bool can_call(const struct world *w, int pod, int c)
{
	const struct pod *p = &w->pods[pod];

	return w->k.up && w->k.pluggedin && pod_is_active(p) && p->admitted && !p->deleting &&
	       p->sandbox && p->c[c].there && p->c[c].state == CTR_WAITS && kubelet_is_next(p, c);
}

static void next_call(struct world *w, int pod, int c)
{
	struct ctr *ctr = &w->pods[pod].c[c];

	while (ctr->pool < w->cfg.n_pools && !ctr->want[ctr->pool])
		ctr->pool++;
	if (ctr->pool == w->cfg.n_pools) {
		ctr->state = CTR_CREATES;
		ctr->ok_ms = w->now_ms;
		return;
	}
	ctr->state = CTR_CALLED;
	us_prestart(w, pod, c, ctr->pool, ctr->ids & pool_set(w, ctr->pool));
}

void kubelet_call(struct world *w, int pod, int c)
{
	if (!claims_are_known(w, w->pods[pod].c[c].claims)) {
		say(w, "pod %d container %d: unable to get claim info", pod, c);
		return;
	}
	w->pods[pod].c[c].pool = 0;
	w->pods[pod].c[c].ids = w->k.devs[pod][c];
	next_call(w, pod, c);
}

/* An error is tried again; the allocation stays. */
void kubelet_called(struct world *w, int pod, int c, bool ok, const char *why)
{
	struct ctr *ctr = &w->pods[pod].c[c];

	ctr->refused = !ok;
	if (ok) {
		ctr->pool++;
		ctr->state = CTR_WAITS;
		next_call(w, pod, c);
	} else {
		say(w, "pod %d (%s) container %d waits: %s", pod, pod_name(w, pod), c, why);
		ctr->state = CTR_WAITS;
		ctr->pool = 0;
	}
}
