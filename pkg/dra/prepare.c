#include "dra/prepare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "base/list.h"
#include "config/config.h"
#include "document/document.h"
#include "dra/slices.h"
#include "holds/holds.h"
#include "kubeclient/checkpoint.h"
#include "kubemsg/apilist.h"
#include "kubemsg/messages.h"
#include "kubemsg/podspec.h"
#include "latebind/latebind.h"
#include "pods/gpus.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define ASK_TIMEOUT_MS	2000
#define BIND_TIMEOUT_MS 10000
#define STATE_MS	60000
#define CLAIMS_MAX	128 /* of one pod: SPEC_CLAIMS_MAX */
#define USERS_MAX	16  /* pods of a claim that are looked at */
#define DRIVERS_MAX	8   /* of GPUs, of one pod */
#define SHARE_MAX	256 /* VFs of one result: a card has no more */

struct prepares {
	struct prepare_env env;
	struct node *node; /* NULL: none yet */
	LIST_HEAD(, job) jobs;
	struct rpc_timer *timer;
	struct user {
		char *claim, *pod; /* UIDs */
	} * users;		   /* pods that claims were prepared for, as far as is known */
	size_t n_users, cap_users;
};

/* A claim of the pod. Those that the kubelet names come first; of others only the GPUs count. */
struct claim_state {
	struct dra_claim_ref ref; /* uid NULL: the kubelet does not name it */
	struct draclaim claim;
	const char *why; /* it is not prepared, or not known; NULL: it is */
	bool stale;	 /* unprepared since */
};

/* A result of our driver. */
struct part {
	const struct claim_state *of;
	const struct draclaim_device *given;
	const struct pool *pool;
	const char *place; /* the PF; NULL: any */
	struct ids slots;
	size_t group; /* index of its first part */
};

/* A call of the kubelet. */
struct job {
	LIST_ENTRY(job) link;
	struct prepares *p;
	struct arena *arena;
	struct node *node;
	struct claim_state *claims;
	size_t n_claims, n_named, n_known; /* known: asked for, in their order */
	const struct spec_pod *pod;	   /* NULL: not looked for yet */
	size_t n_users;			   /* that were asked for */
	bool asked_pods;
	const char *why_no_pod;
	const char *doubt;
	bool unprepares, is_saved;
	bool stale;	      /* one of its claims was unprepared since */
	const char **drivers; /* other ones, whose slices were asked for */
	size_t n_drivers;
	struct part *parts;
	size_t n_parts, group; /* group: the one that is bound now */
	struct pending *asked;
	prepare_done_fn done;
	void *arg;
};

/* --- the answer --- */

/* "gpus/large" is of the request "gpus". */
static size_t request_len(const char *request)
{
	return strcspn(request, "/");
}

static bool same_request(const char *a, const char *b)
{
	size_t n = request_len(a);

	return request_len(b) == n && !strncmp(a, b, n);
}

static const struct dra_device *devices_of(struct job *j, const struct claim_state *c, size_t *ret)
{
	struct dra_device *v = arena_array(j->arena, j->n_parts, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < j->n_parts; i++) {
		const struct part *part = &j->parts[i];
		struct dra_device *d = &v[n];

		if (part->of != c)
			continue;
		*d = (struct dra_device) { .pool = part->given->pool,
					   .device = part->given->device,
					   .share = part->given->share };
		d->requests = (struct ids) { arena_array(j->arena, 1, sizeof(*d->requests.v)), 1 };
		d->requests.v[0] =
			arena_printf(j->arena, "%.*s", (int)request_len(part->given->request),
				     part->given->request);
		d->cdi = (struct ids) { arena_array(j->arena, part->slots.n, sizeof(*d->cdi.v)),
					part->slots.n };
		for (size_t k = 0; k < part->slots.n; k++)
			d->cdi.v[k] = cdi_device(part->slots.v[k], j->arena);
		n++;
	}
	*ret = n;
	return v;
}

static void end_unprepared(struct prepares *p);

static void end(struct job *j)
{
	struct prepares *p = j->unprepares ? NULL : j->p;

	struct dra_result *v = arena_array(j->arena, j->n_named, sizeof(*v));
	const struct dra_results results = { v, j->n_named };

	for (size_t i = 0; i < j->n_named; i++) {
		struct claim_state *c = &j->claims[i];

		v[i] = (struct dra_result) { .uid = c->ref.uid, .error = c->why };
		if (!c->why)
			v[i].v = devices_of(j, c, &v[i].n);
	}
	LIST_REMOVE(j, link);
	pending_cancel(&j->asked);
	j->done(j->arg, &results);
	node_unref(j->node);
	arena_free(j->arena);
	free(j);
	if (p)
		end_unprepared(p);
}

/* A pod starts with all its claims or not at all: a claim that was prepared alone would be another
 * spec of the same container, with other variables. */
static void fail(struct job *j, const struct claim_state *because, const char *why)
{
	for (size_t i = 0; i < j->n_named; i++) {
		struct claim_state *c = &j->claims[i];

		if (c == because || !because)
			c->why = why;
		else if (!c->why)
			c->why = arena_printf(j->arena, "claim %s/%s of the same pod: %s",
					      because->ref.ns, because->ref.name, why);
	}
	end(j);
}

/* --- pods of claims --- */

static void note_user(struct prepares *p, const char *claim, const char *pod)
{
	for (size_t i = 0; i < p->n_users; i++) {
		if (!strcmp(p->users[i].claim, claim) && !strcmp(p->users[i].pod, pod))
			return;
	}
	p->users = xgrow(p->users, &p->cap_users, p->n_users + 1, sizeof(*p->users));
	p->users[p->n_users++] = (struct user) { xstrdup(claim), xstrdup(pod) };
}

static bool runs(const struct prepares *p, const char *pod)
{
	enum holds_cgroup cgroup = tracker_cgroup(p->env.tracker, pod);

	return cgroup != HOLDS_CGROUP_EMPTY && cgroup != HOLDS_CGROUP_OFF;
}

/* Those of the claim; claim NULL: those that have ended. */
static void forget_users(struct prepares *p, const char *claim)
{
	for (size_t i = p->n_users; i-- > 0;) {
		if (claim ? strcmp(p->users[i].claim, claim) != 0 : runs(p, p->users[i].pod))
			continue;
		free(p->users[i].claim);
		free(p->users[i].pod);
		p->users[i] = p->users[--p->n_users];
	}
}

/* How many run still, though the kubelet has forgotten them; ret: one of them, else NULL. */
static size_t running_users(const struct prepares *p, const char *claim, const char **ret)
{
	size_t n = 0;

	*ret = NULL;
	for (size_t i = 0; i < p->n_users; i++) {
		if (strcmp(p->users[i].claim, claim) != 0 || !runs(p, p->users[i].pod))
			continue;
		*ret = p->users[i].pod;
		n++;
	}
	return n;
}

/* False: the kubelet's checkpoint of claims cannot be read. */
static bool read_users(struct prepares *p, struct arena *a, struct prepared_list *ret)
{
	if (!p->env.state || !kubeclient_prepared(p->env.state, a, ret, NULL))
		return false;
	for (size_t i = 0; i < ret->n; i++) {
		for (size_t k = 0; k < ret->v[i].pods.n; k++)
			note_user(p, ret->v[i].claim, ret->v[i].pods.v[k]);
	}
	return true;
}

static void unprepare(struct prepares *p, const char *uid)
{
	struct ledger_owner owner = { .ns = "" };
	size_t n = running_users(p, uid, &owner.uid);

	holds_event(tracker_holds(p->env.tracker),
		    &(struct holds_event) { .kind = HOLDS_UNPREPARED,
					    .claim_uid = uid,
					    .owner = n ? &owner : NULL },
		    tracker_now());
	forget_users(p, uid);
}

/* The kubelet has given up, and late binding may have bound some VFs since. */
static bool is_over(struct job *j)
{
	if (!j->stale)
		return false;
	/* Another pod may run with those that the kubelet did not name. */
	for (size_t i = 0; i < j->n_named; i++) {
		if (j->claims[i].stale)
			unprepare(j->p, j->claims[i].ref.uid);
	}
	tracker_save(j->p->env.tracker, NULL, NULL);
	fail(j, NULL, "the claim was unprepared meanwhile");
	return true;
}

/* --- binding --- */

static void bind_next(struct job *j);

static void bound(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	struct job *j = pending_end(arg);

	if (!j || is_over(j))
		return;
	if (err) {
		fail(j, j->parts[j->group].of, arena_strdup(j->arena, err->msg));
		return;
	}
	j->group++;
	bind_next(j);
}

static bool has_part(const struct spec_container *c, const struct claim_state *of,
		     const struct draclaim_device *given)
{
	for (size_t i = 0; i < c->n_claims; i++) {
		if (str_eq(c->claims[i].claim, of->ref.name) &&
		    (!c->claims[i].request || same_request(c->claims[i].request, given->request)))
			return true;
	}
	return false;
}

static bool is_in_group(const struct job *j, const struct spec_container *c, size_t group)
{
	for (size_t i = 0; i < j->n_parts; i++) {
		if (j->parts[i].group == group && has_part(c, j->parts[i].of, j->parts[i].given))
			return true;
	}
	return false;
}

/* What other drivers gave the container by its claims. */
static void add_dynamic(struct job *j, const struct spec_container *c, struct latebind_claim *ret,
			struct dynamic *v)
{
	for (size_t i = 0; i < j->n_claims; i++) {
		const struct claim_state *of = &j->claims[i];

		for (size_t k = 0; k < of->claim.n; k++) {
			const struct draclaim_device *d = &of->claim.v[k];

			if (!str_eq(d->driver, j->p->env.driver) && has_part(c, of, d))
				v[ret->n_dynamic++] = (struct dynamic) { .driver = d->driver,
									 .pool = d->pool,
									 .device = d->device,
									 .claim = of->ref.name };
		}
	}
}

static const char *names_of_group(const struct job *j)
{
	const char *names = NULL;

	for (size_t i = 0; i < j->n_named; i++) {
		bool has = false;

		for (size_t k = 0; k < j->n_parts; k++)
			has |= j->parts[k].group == j->group && j->parts[k].of == &j->claims[i];
		if (has)
			names = arena_printf(j->arena, "%s%s%s", names ? names : "",
					     names ? "," : "", j->claims[i].ref.name);
	}
	return names;
}

static void bind_group(struct job *j)
{
	struct arena *a = j->arena;
	size_t n_slots = 0, n_devices = 0;
	struct latebind_claim c = {
		.owner = { .ns = j->pod->ns, .pod = j->pod->name, .uid = j->pod->uid },
		.containers = { arena_array(a, j->pod->n_containers, sizeof(*c.containers.v)), 0 },
		.names = names_of_group(j),
		.doubt = j->doubt,
	};
	const char **places;
	struct dynamic *dynamic;

	for (size_t i = 0; i < j->n_parts; i++)
		n_slots += j->parts[i].slots.n;
	for (size_t i = 0; i < j->n_claims; i++)
		n_devices += j->claims[i].claim.n;
	c.slots.v = arena_array(a, n_slots, sizeof(*c.slots.v));
	c.places = places = arena_array(a, n_slots, sizeof(*places));
	c.dynamic = dynamic = arena_array(a, n_devices * j->pod->n_containers, sizeof(*dynamic));
	for (size_t i = 0; i < j->n_parts; i++) {
		const struct part *part = &j->parts[i];

		for (size_t k = 0; part->group == j->group && k < part->slots.n; k++) {
			places[c.slots.n] = part->place;
			c.slots.v[c.slots.n++] = part->slots.v[k];
		}
	}
	for (size_t i = 0; i < j->pod->n_containers; i++) {
		const struct spec_container *container = &j->pod->containers[i];

		if (!is_in_group(j, container, j->group))
			continue;
		c.containers.v[c.containers.n++] = container->name;
		add_dynamic(j, container, &c, dynamic);
	}
	c.owner.container = c.containers.n ? c.containers.v[0] : "";
	latebind_prepare(j->p->env.latebind, &c, j->p->env.timeout_ms, bound,
			 pending_new(j, &j->asked));
}

static void bind_next(struct job *j)
{
	while (j->group < j->n_parts && j->parts[j->group].group != j->group)
		j->group++;
	if (j->group == j->n_parts)
		end(j);
	else
		bind_group(j);
}

/* --- parts --- */

/* Parts that one container has are one group. */
static void join(struct job *j)
{
	for (size_t i = 0; i < j->n_parts; i++)
		j->parts[i].group = i;
	for (size_t i = 0; i < j->pod->n_containers; i++) {
		size_t first = SIZE_MAX, other;

		for (size_t k = 0; k < j->n_parts; k++) {
			if (!has_part(&j->pod->containers[i], j->parts[k].of, j->parts[k].given))
				continue;
			other = j->parts[k].group;
			if (first == SIZE_MAX)
				first = other;
			for (size_t m = 0; m < j->n_parts; m++) {
				if (j->parts[m].group == other || j->parts[m].group == first)
					j->parts[m].group = other < first ? other : first;
			}
			first = other < first ? other : first;
		}
	}
}

/* Its slots: the number of a slot's device; shares of a PF are counted in the order of results. */
static const char *number(struct job *j, struct part *part, unsigned number, unsigned *counted)
{
	size_t n = part->place && part->given->vfs > 1 ? (size_t)part->given->vfs : 1;

	if (n > SHARE_MAX)
		return "a share of more VFs than a card has";
	part->slots.v = arena_array(j->arena, n, sizeof(*part->slots.v));
	for (; part->slots.n < n; part->slots.n++) {
		const char *slot = pool_claim_slot(part->pool->cfg->resource, part->of->ref.uid,
						   part->place ? (*counted)++ : number, j->arena);

		if (!slot)
			return "its UID is not one of the API server's (RFC 4122)";
		part->slots.v[part->slots.n] = slot;
	}
	return NULL;
}

/* The sentence why not; NULL: j has the parts of the claim. */
static const char *add_parts(struct job *j, struct claim_state *c)
{
	unsigned counted = 0;
	size_t before = j->n_parts;

	for (size_t i = 0; i < c->claim.n; i++) {
		const struct draclaim_device *d = &c->claim.v[i];
		struct part *part = &j->parts[j->n_parts];
		struct slices_device device;
		const char *why;

		if (!str_eq(d->driver, j->p->env.driver))
			continue;
		if (d->admin)
			return arena_printf(
				j->arena,
				"request %s has adminAccess, which is to monitor devices: it gives no VF",
				d->request);
		if (!slices_find(j->node, d->device, &device))
			return arena_printf(
				j->arena,
				"device %s of request %s is of no pool of this node: was the configuration changed? Delete the pod",
				d->device, d->request);
		*part = (struct part) {
			.of = c, .given = d, .pool = device.pool, .place = device.place
		};
		why = number(j, part, device.number, &counted);
		if (why)
			return why;
		j->n_parts++;
	}
	if (j->n_parts == before)
		return arena_printf(j->arena, "it has no device of %s: is it allocated?",
				    j->p->env.driver);
	return NULL;
}

static void bind_all(struct job *j)
{
	size_t room = 0;

	for (size_t i = 0; i < j->n_named; i++)
		room += j->claims[i].claim.n;
	j->parts = arena_array(j->arena, room, sizeof(*j->parts));
	for (size_t i = 0; i < j->n_named; i++) {
		const char *why = add_parts(j, &j->claims[i]);

		if (why) {
			fail(j, &j->claims[i], why);
			return;
		}
	}
	join(j);
	bind_next(j);
}

/* --- whose? --- */

static bool is_user(const struct claim_state *c, const char *uid)
{
	for (size_t i = 0; i < c->claim.n_users; i++) {
		if (str_eq(c->claim.users[i].uid, uid))
			return true;
	}
	return false;
}

/* The kubelet names the claims of one pod in one call. Of several the oldest one: a claim that they
 * share is prepared for the first. */
static void consider(struct job *j, const struct spec_pod *pod)
{
	bool has = !pod->deleted;

	for (size_t i = 0; has && i < j->n_named; i++)
		has = is_user(&j->claims[i], pod->uid);
	if (!has)
		return;
	if (j->pod)
		j->doubt =
			"several pods have the claim, and its VFs are chosen for the oldest of them";
	if (!j->pod || pod->created < j->pod->created)
		j->pod = arena_copy(j->arena, pod, sizeof(*pod));
}

static bool is_known(const struct job *j, const char *claim)
{
	for (size_t i = 0; i < j->n_claims; i++) {
		if (str_eq(j->claims[i].ref.name, claim))
			return true;
	}
	return false;
}

/* The other claims of the pod: its GPUs may be in them. */
static void add_claims(struct job *j)
{
	for (size_t i = 0; i < j->pod->n_containers; i++) {
		const struct spec_container *c = &j->pod->containers[i];

		for (size_t k = 0; k < c->n_claims; k++) {
			if (j->n_claims < CLAIMS_MAX && !is_known(j, c->claims[k].claim))
				j->claims[j->n_claims++].ref =
					(struct dra_claim_ref) { .ns = j->pod->ns,
								 .name = c->claims[k].claim };
		}
	}
}

static void ask_next(struct job *j);

static void take_pod(struct job *j)
{
	if (!j->pod)
		fail(j, NULL,
		     arena_printf(j->arena, "no pod that the claim is reserved for is known: %s",
				  j->why_no_pod ? j->why_no_pod : "it is reserved for none"));
	else if (j->pod->unread)
		fail(j, NULL,
		     arena_printf(j->arena, "the containers of pod %s/%s are not known: %s",
				  j->pod->ns, j->pod->name, j->pod->unread));
	else {
		add_claims(j);
		ask_next(j);
	}
}

static void ask_pod(struct job *j);

static void pod_came(void *arg, long status, struct bytes body, const char *why)
{
	struct job *j = pending_end(arg);
	struct spec_pods pods;
	struct err err = { 0 };

	if (!j || is_over(j))
		return;
	pods = (struct spec_pods) { .arena = j->arena };
	if (!why && kubemsg_pod(body, &pods, &err) < 0)
		why = err.msg;
	if (why)
		j->why_no_pod = arena_strdup(j->arena, why);
	else if (pods.n)
		consider(j, pods.v);
	kubemsg_podspec_done(&pods);
	ask_pod(j);
}

/* The pods of the claim that has the fewest, one after the other: each has all claims of the call,
 * or is not the one. The kubelet's own list does not have the status, in which the scheduler has
 * written which claim is whose. */
static void ask_pod(struct job *j)
{
	const struct prepare_env *env = &j->p->env;
	const struct claim_state *c = &j->claims[0];
	struct api_request request = { .method = "GET", .timeout_ms = env->ask_ms };
	const char *name;

	for (size_t i = 1; i < j->n_named; i++) {
		if (j->claims[i].claim.n_users < c->claim.n_users)
			c = &j->claims[i];
	}
	if (j->n_users == c->claim.n_users || j->n_users == USERS_MAX) {
		j->asked_pods = true;
		take_pod(j);
		return;
	}
	name = c->claim.users[j->n_users++].pod;
	if (kubeapi_objects_is_name(name))
		request.path =
			arena_printf(j->arena, "/api/v1/namespaces/%s/pods/%s", c->ref.ns, name);
	env->ask(env->ctx, &request, pod_came, pending_new(j, &j->asked));
}

/* --- GPUs that do not have the names that vendors give them --- */

/* A driver that has a device like that and was not asked for yet; NULL: none. */
static const char *unknown_driver(const struct job *j)
{
	for (size_t i = 0; j->n_drivers < DRIVERS_MAX && i < j->n_claims; i++) {
		for (size_t k = 0; k < j->claims[i].claim.n; k++) {
			const struct draclaim_device *d = &j->claims[i].claim.v[k];
			const struct dynamic one = { .driver = d->driver, .device = d->device };

			if (!str_eq(d->driver, j->p->env.driver) &&
			    !list_has(j->drivers, j->n_drivers, d->driver) &&
			    !pods_names_gpu(j->node->inv, &one))
				return d->driver;
		}
	}
	return NULL;
}

/* Their addresses in place of their names: pods_gpus() knows these of any driver. */
static void name_by_address(struct job *j, const char *driver, const struct item *list)
{
	for (size_t i = 0; i < j->n_claims; i++) {
		struct draclaim *claim = &j->claims[i].claim;
		struct draclaim_device *v = arena_copy(j->arena, claim->v, claim->n * sizeof(*v));

		for (size_t k = 0; k < claim->n; k++) {
			const char *address =
				str_eq(v[k].driver, driver) ? slices_address(list, &v[k]) : NULL;

			if (address)
				v[k].device = arena_strdup(j->arena, address);
		}
		claim->v = v;
	}
}

static void slices_came(void *arg, long status, struct bytes body, const char *why)
{
	struct job *j = pending_end(arg);
	const struct item *list = NULL;
	struct err err = { 0 };
	const char *driver;

	if (!j || is_over(j))
		return;
	driver = j->drivers[j->n_drivers - 1];
	if (!why && document_parse((const char *)body.data, body.len, "ResourceSlices", j->arena,
				   &list, &err) < 0)
		why = err.msg;
	if (why)
		j->doubt = arena_printf(j->arena, "where devices of %s are is not known: %s",
					driver, why);
	else
		name_by_address(j, driver, list);
	ask_next(j);
}

static void ask_slices(struct job *j, const char *driver)
{
	const struct prepare_env *env = &j->p->env;
	const struct api_request request = {
		.method = "GET",
		.path = arena_printf(
			j->arena,
			"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%%3D%s,spec.driver%%3D%s",
			env->node_name, driver),
		.accept = "application/json",
		.timeout_ms = env->ask_ms,
	};

	if (!j->drivers)
		j->drivers = arena_array(j->arena, DRIVERS_MAX, sizeof(*j->drivers));
	j->drivers[j->n_drivers++] = driver;
	env->ask(env->ctx, &request, slices_came, pending_new(j, &j->asked));
}

static void claim_came(void *arg, const struct draclaim *claim, const char *why)
{
	struct job *j = pending_end(arg);
	struct claim_state *c;

	if (!j || is_over(j))
		return;
	c = &j->claims[j->n_known++];
	if (claim)
		c->claim = kubemsg_draclaim_copy(claim, j->arena);
	for (size_t i = 0; c->ref.uid && i < c->claim.n_users; i++)
		note_user(j->p, c->ref.uid, c->claim.users[i].uid);
	if (!claim && c->ref.uid)
		fail(j, c, arena_printf(j->arena, "the claim cannot be read: %s", why));
	else if (!claim) {
		j->doubt = arena_printf(j->arena, "the GPUs of claim %s are not known: %s",
					c->ref.name, why);
		ask_next(j);
	} else if (c->ref.uid && !str_eq(c->claim.uid, c->ref.uid))
		fail(j, c, "the API server has another claim of that name: this one was deleted");
	else
		ask_next(j);
}

static void ask_next(struct job *j)
{
	const struct prepare_env *env = &j->p->env;
	const struct claim_state *c = &j->claims[j->n_known];
	const char *driver;

	if (j->n_known < j->n_claims)
		env->claims->fetch(env->claims->ctx, c->ref.ns, c->ref.name, env->ask_ms,
				   claim_came, pending_new(j, &j->asked));
	else if (!j->asked_pods)
		ask_pod(j);
	else if ((driver = unknown_driver(j)))
		ask_slices(j, driver);
	else
		bind_all(j);
}

/* --- calls --- */

static struct job *job_new(struct prepares *p, const struct dra_claim_refs *refs,
			   prepare_done_fn done, void *arg)
{
	struct job *j = xcalloc(1, sizeof(*j));

	*j = (struct job) {
		.p = p, .arena = arena_new(16 * 1024), .done = done, .arg = arg, .n_named = refs->n
	};
	j->claims = arena_array(j->arena, refs->n + CLAIMS_MAX, sizeof(*j->claims));
	for (; j->n_claims < refs->n; j->n_claims++)
		j->claims[j->n_claims].ref =
			(struct dra_claim_ref) { arena_strdup(j->arena, refs->v[j->n_claims].ns),
						 arena_strdup(j->arena, refs->v[j->n_claims].uid),
						 arena_strdup(j->arena,
							      refs->v[j->n_claims].name) };
	LIST_INSERT_HEAD(&p->jobs, j, link);
	return j;
}

void prepare_claims(struct prepares *p, const struct dra_claim_refs *refs, prepare_done_fn done,
		    void *arg)
{
	struct job *j = job_new(p, refs, done, arg);

	if (!p->node) {
		fail(j, NULL, "the node is not known yet");
	} else if (!p->env.claims) {
		fail(j, NULL, "there is no API server to ask (--pod-specs)");
	} else if (refs->n > CLAIMS_MAX) {
		fail(j, NULL, "these are more claims than a pod can have");
	} else {
		j->node = node_ref(p->node);
		ask_next(j);
	}
}

/* Those of the other one that j unprepares are stale. */
static void make_stale(const struct job *j, struct job *other)
{
	for (size_t i = 0; i < j->n_named; i++) {
		for (size_t k = 0; k < other->n_named; k++) {
			if (str_eq(j->claims[i].ref.uid, other->claims[k].ref.uid))
				other->stale = other->claims[k].stale = true;
		}
	}
}

static bool names_one_of(const struct job *j, const struct job *other)
{
	for (size_t i = 0; i < j->n_named; i++) {
		for (size_t k = 0; k < other->n_named; k++) {
			if (str_eq(j->claims[i].ref.uid, other->claims[k].ref.uid))
				return true;
		}
	}
	return false;
}

/* A job that is stale unprepares its claims when it ends: not after the kubelet has prepared them
 * anew, for another pod, and it does not before it has this answer. */
static bool is_awaited(const struct job *j)
{
	const struct job *other;
	bool is = false;

	LIST_FOREACH (other, &j->p->jobs, link)
		is |= !other->unprepares && other->stale && names_one_of(other, j);
	return is;
}

static void end_unprepared(struct prepares *p)
{
	struct job *j = LIST_FIRST(&p->jobs), *next;

	for (; j; j = next) {
		next = LIST_NEXT(j, link);
		if (j->unprepares && j->is_saved && !is_awaited(j))
			end(j);
	}
}

static void saved(void *arg)
{
	struct job *j = pending_end(arg);

	if (!j)
		return;
	j->is_saved = true;
	end_unprepared(j->p);
}

void unprepare_claims(struct prepares *p, const struct dra_claim_refs *refs, prepare_done_fn done,
		      void *arg)
{
	struct job *j = job_new(p, refs, done, arg), *other;
	struct prepared_list all;
	const char *pod;

	j->unprepares = true;
	/* A record that comes later would be of a claim that the kubelet has forgotten. */
	if (!holds_status(tracker_holds(p->env.tracker)).settled) {
		fail(j, NULL, "not all records of what is held were read yet");
		return;
	}
	read_users(p, j->arena, &all);
	for (size_t i = 0; i < refs->n; i++) {
		if (running_users(p, refs->v[i].uid, &pod) > 1) {
			fail(j, &j->claims[i], "several pods of it that were deleted still run");
			return;
		}
	}
	LIST_FOREACH (other, &p->jobs, link) {
		if (!other->unprepares)
			make_stale(j, other);
	}
	for (size_t i = 0; i < refs->n; i++)
		unprepare(p, refs->v[i].uid);
	tracker_save(p->env.tracker, saved, pending_new(j, &j->asked));
}

static bool names(const struct prepared_list *all, const char *claim)
{
	for (size_t i = 0; i < all->n; i++) {
		if (!strcmp(all->v[i].claim, claim))
			return true;
	}
	return false;
}

/* The kubelet has forgotten a claim, and will not say so: its answer, or the ledger in which the
 * claim was draining, is lost. */
static void read_state(void *arg)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct prepares *p = arg;
	struct holds *h = tracker_holds(p->env.tracker);
	struct prepared_list all;
	bool known, any = false;

	forget_users(p, NULL);
	known = read_users(p, a, &all) && holds_status(h).settled;
	for (size_t i = 0; known && i < ledger_holds(holds_ledger(h)); i++) {
		const struct ledger_hold *hold = ledger_hold_at(holds_ledger(h), i);
		const char *claim = arena_strdup(a, hold->owner.claim);

		if (!claim || !*claim || hold->draining || names(&all, claim))
			continue;
		unprepare(p, claim);
		any = true;
	}
	if (any)
		tracker_save(p->env.tracker, NULL, NULL);
	p->timer = rpc_after(p->env.rpc, p->env.state_ms, read_state, p);
}

void prepare_update(struct prepares *p, struct node *node)
{
	struct node *before = p->node;

	p->node = node_ref(node);
	node_unref(before);
}

struct prepares *prepare_open(const struct prepare_env *env)
{
	struct prepares *p = xcalloc(1, sizeof(*p));

	p->env = *env;
	if (!p->env.ask_ms)
		p->env.ask_ms = ASK_TIMEOUT_MS;
	if (!p->env.timeout_ms)
		p->env.timeout_ms = BIND_TIMEOUT_MS;
	if (!p->env.state_ms)
		p->env.state_ms = STATE_MS;
	LIST_INIT(&p->jobs);
	if (env->state)
		p->timer = rpc_after(env->rpc, p->env.state_ms, read_state, p);
	return p;
}

void prepare_close(struct prepares *p)
{
	struct job *j;

	if (!p)
		return;
	rpc_timer_cancel(STEAL(p->timer));
	while (p->n_users)
		forget_users(p, p->users[0].claim);
	free(p->users);
	while ((j = LIST_FIRST(&p->jobs)))
		fail(j, NULL, "railmated is stopping");
	node_unref(p->node);
	free(p);
}
