#include "daemon/state-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "netlink/netlink.h"
#include "sysroot/sysroot.h"
#include "tracker/tracker.h"

static void drop_ledger(struct state *s)
{
	ledger_free(STEAL(s->ledger));
	free(STEAL(s->seeds));
	s->n_seeds = 0;
}

static int load(struct state *s, struct err *err)
{
	_cleanup_free_ char *note = NULL;
	int r = ledger_file_load(s->file, &s->ledger, &note, err);

	if (r < 0) {
		ledger_file_close(STEAL(s->file));
		return r;
	}
	if (note)
		log_warn(
			"ledger",
			"the ledger cannot be read: allocations are rebuilt from CDI specs, map.json and the kubelet reason=%s",
			note);
	return 0;
}

/* The disk is no reason not to serve: without it, the kubelet is asked for the holds after a
 * restart. */
static int open_ledger(struct state *s, const char *dir, struct err *err)
{
	int r = dir ? ledger_file_open(dir, 0, &s->file, err) : 0;

	if (r == -EBUSY)
		return r;
	drop_ledger(s); /* the one of state_peek() */
	if (r == 0 && dir)
		r = load(s, err);
	if (r < 0)
		log_warn("ledger",
			 "the ledger is kept in memory, and the directory is tried again error=%s",
			 err->msg);
	s->away = r < 0 ? dir : NULL;
	return 0;
}

static void note_seeds(struct state *s)
{
	size_t n = s->ledger ? ledger_holds(s->ledger) : 0;

	s->seeds = xcalloc(n, sizeof(*s->seeds));
	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = ledger_hold_at(s->ledger, i);

		s->seeds[s->n_seeds++] = (struct node_seed) { .resource = hold->resource,
							      .vf = hold->vf,
							      .rdma = hold->rdma,
							      .driver = hold->driver };
	}
}

/* The devices of this kernel are not those of a machine below another root. */
static void open_users(struct state *s, const struct sysroot *root)
{
	struct err err = { 0 };

	if (sysroot_is_live(root) && rdma_users_open(&s->users, &err) < 0)
		log_info("ledger", "open RDMA devices cannot be read error=%s", err.msg);
}

int state_open(struct state *ret, const char *dir, const struct sysroot *root, struct err *err)
{
	struct err trouble = { 0 };
	int r = open_ledger(ret, dir, &trouble);

	if (r < 0)
		return err_set(err, trouble.code, "%s", trouble.msg);
	note_seeds(ret);
	open_users(ret, root);
	return 0;
}

void state_peek(struct state *ret, const char *dir)
{
	struct err ignored = { 0 };

	drop_ledger(ret);
	if (ledger_file_peek(dir, &ret->ledger, &ignored) == 0)
		note_seeds(ret);
}

bool state_is_in(const struct state *s, const struct node *node)
{
	for (size_t i = 0; i < s->n_seeds; i++) {
		const struct node_seed *seed = &s->seeds[i];
		const struct pool *pool = node_pool(node, seed->resource);

		if (pool && !pool_find(pool, seed->vf))
			return false;
	}
	return true;
}

static int count_users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg)
{
	struct rdma_users *users = ctx;

	return users ? rdma_users_count(users, rdma, seen, arg) : -ENOTSUP;
}

static void log_note(void *ctx, bool bad, const char *event)
{
	(void)ctx;
	log_event(bad ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "ledger", event);
}

struct tracker *state_make_tracker(struct state *s, const struct tracker_env *env)
{
	struct tracker_env full = *env;

	full.holds = holds_new(STEAL(s->ledger), &holds_default_pace, tracker_now());
	full.file = STEAL(s->file);
	full.away_dir = s->away;
	full.users = count_users;
	full.users_ctx = s->users;
	full.note = log_note;
	return tracker_new(&full);
}

void state_close(struct state *s)
{
	drop_ledger(s);
	ledger_file_close(STEAL(s->file));
	rdma_users_close(STEAL(s->users));
}
