#include "kubeclient/gpuplugin.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"

#define ANSWER_BYTES_MAX (1u << 20)
#define CANDIDATES_MAX	 8
#define DISTRUST_MS	 30000 /* a socket that hung or talked nonsense is not asked again before */
#define LATE		 "no answer in time"

/* A socket that may be the GPU plugin's. */
struct peer {
	LIST_ENTRY(peer) link;
	char *path;
	struct socket_id id;
	struct rpc_channel *channel; /* NULL: not dialled yet */
	bool known;		     /* it reported that it has preferences */
	bool mute; /* it reported that it has none; true for the life of the socket */
	int64_t distrust_until_ms; /* it hung or talked nonsense */
	unsigned questions;	   /* under way */
};

struct question {
	LIST_ENTRY(question) link;
	struct gpuplugin *g; /* NULL: gone, and the question has been answered */
	struct arena *arena;
	const char *resource;
	struct ids available;
	size_t size;
	int64_t until_ms;
	struct peer *peers[CANDIDATES_MAX]; /* the likeliest first */
	size_t n_peers, at;
	struct rpc_timer *timer; /* NULL: a call is under way */
	bool random;		 /* one of them has no preferences */
	const char *why;	 /* the fault of the last one */
	gpuplugin_done_fn done;
	void *arg;
};

struct gpuplugin {
	struct rpc *rpc;
	const char *const *dirs;
	size_t n_dirs;
	const char *socket;
	LIST_HEAD(, peer) peers;
	LIST_HEAD(, question) questions;
};

struct gpuplugin *kubeclient_gpuplugin_open(struct rpc *rpc, const char *const *dirs, size_t n_dirs,
					    const char *socket)
{
	struct gpuplugin *g = xcalloc(1, sizeof(*g));

	*g = (struct gpuplugin) { .rpc = rpc, .dirs = dirs, .n_dirs = n_dirs, .socket = socket };
	LIST_INIT(&g->peers);
	LIST_INIT(&g->questions);
	return g;
}

/* --- sockets --- */

static void peer_free(struct peer *peer)
{
	LIST_REMOVE(peer, link);
	rpc_channel_close(peer->channel);
	free(peer->path);
	free(peer);
}

static struct peer *peer_find(const struct gpuplugin *g, const char *path)
{
	struct peer *peer = LIST_FIRST(&g->peers);

	while (peer && strcmp(peer->path, path))
		peer = LIST_NEXT(peer, link);
	return peer;
}

static struct peer *peer_get(struct gpuplugin *g, const char *path, const struct socket_id *id)
{
	struct peer *peer = peer_find(g, path);

	if (!peer) {
		peer = xcalloc(1, sizeof(*peer));
		peer->path = xstrdup(path);
		peer->id = *id;
		LIST_INSERT_HEAD(&g->peers, peer, link);
	} else if (!rpc_socket_same(&peer->id, id)) {
		/* Another socket at the same path is another plugin. */
		rpc_channel_close(STEAL(peer->channel));
		peer->id = *id;
		peer->known = peer->mute = false;
		peer->distrust_until_ms = 0;
	}
	return peer;
}

static bool holds_word(const char *file, const char *word, size_t len)
{
	for (; *file; file++) {
		if (!strncasecmp(file, word, len))
			return true;
	}
	return false;
}

/* How many words of the resource that are specific (not the end of a domain) are in the file's
 * name. */
static unsigned likeness(const char *file, const char *resource)
{
	static const char *const domains[] = { "com", "ai", "io", "org", "net" };
	unsigned n = 0;
	size_t len;

	for (const char *word = resource; *word; word += len + (word[len] != '\0')) {
		bool distinguishes;

		len = strcspn(word, "./-_");
		distinguishes = len > 1;
		for (size_t i = 0; i < ARRAY_LEN(domains); i++)
			distinguishes &=
				strlen(domains[i]) != len || strncmp(word, domains[i], len) != 0;
		n += distinguishes && holds_word(file, word, len);
	}
	return n;
}

struct found {
	char *path;
	unsigned likeness;
	struct socket_id id;
};

static int likeliest_first(const void *x, const void *y)
{
	const struct found *a = x, *b = y;

	if (a->likeness != b->likeness)
		return a->likeness < b->likeness ? 1 : -1;
	return strcmp(a->path, b->path);
}

/* Another program's, and listening. One that has answered us is asked: a connection to no end would
 * only delay its answer. */
static bool is_alive(const struct gpuplugin *g, const struct found *f)
{
	const struct peer *peer = peer_find(g, f->path);
	struct rpc_peer listener = { .pid = 0 };

	if (peer && peer->known && rpc_socket_same(&peer->id, &f->id))
		return true;
	return rpc_socket_accepts(f->path, &listener) && listener.pid != getpid();
}

#define FOUND_MAX 64

static size_t search_dir(const struct question *q, const char *dir, struct found *v, size_t n)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && n < FOUND_MAX && (e = readdir(d))) {
		struct found *f = &v[n];

		f->likeness = e->d_name[0] != '.' ? likeness(e->d_name, q->resource) : 0;
		if (!f->likeness)
			continue;
		f->path = arena_printf(q->arena, "%s/%s", dir, e->d_name);
		n += rpc_socket_id(f->path, &f->id) && is_alive(q->g, f);
	}
	if (d)
		closedir(d);
	return n;
}

static void search(struct question *q)
{
	struct gpuplugin *g = q->g;
	struct found v[FOUND_MAX];
	size_t n = 0;

	if (g->socket) {
		v[0] = (struct found) { .path = arena_strdup(q->arena, g->socket) };
		n = rpc_socket_id(g->socket, &v[0].id);
	} else {
		for (size_t i = 0; i < g->n_dirs; i++)
			n = search_dir(q, g->dirs[i], v, n);
		if (n)
			qsort(v, n, sizeof(*v), likeliest_first);
	}
	for (size_t i = 0; i < n && q->n_peers < CANDIDATES_MAX; i++) {
		q->peers[q->n_peers] = peer_get(g, v[i].path, &v[i].id);
		q->peers[q->n_peers++]->questions++;
	}
}

/* --- the end of a question --- */

static void question_free(struct question *q)
{
	arena_free(q->arena);
	free(q);
}

static void finish(struct question *q, const struct ids *ids)
{
	LIST_REMOVE(q, link);
	for (size_t i = 0; i < q->n_peers; i++)
		q->peers[i]->questions--;
	q->done(q->arg, ids, !ids && q->random, ids ? NULL : q->why);
	question_free(q);
}

/* --- asking one after the other --- */

static void ask_peer(struct question *q);

static void distrust(struct question *q, const char *what)
{
	struct peer *peer = q->peers[q->at];

	peer->distrust_until_ms = clock_mono_ms() + DISTRUST_MS;
	q->why = arena_printf(q->arena, "%s: %s", peer->path, what);
	q->at++;
	ask_peer(q);
}

/* NULL: it makes sense. */
static const char *nonsense(const struct question *q, const struct id_lists *lists)
{
	const struct ids *ids = lists->n ? &lists->v[0] : NULL;

	if (!ids || ids->n != q->size)
		return arena_printf(q->arena, "prefers %zu GPUs, not %zu", ids ? ids->n : 0,
				    q->size);
	for (size_t i = 0; i < ids->n; i++) {
		size_t at = 0;

		while (at < q->available.n && strcmp(q->available.v[at], ids->v[i]) != 0)
			at++;
		if (at == q->available.n)
			return arena_printf(q->arena, "prefers '%.64s', which is not free",
					    ids->v[i]);
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(ids->v[i], ids->v[k]))
				return arena_printf(q->arena, "prefers '%.64s' twice", ids->v[i]);
		}
	}
	return NULL;
}

static const char *failure(const struct question *q, enum rpc_status status, const char *message)
{
	if (status == RPC_DEADLINE_EXCEEDED)
		return LATE;
	return message && *message ? arena_strdup(q->arena, message) : "the call failed";
}

static void preferred(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct question *q = arg;
	struct err err = { 0 };
	struct id_lists lists;
	const char *wrong;

	if (!q->g) {
		question_free(q);
		return;
	}
	if (status != RPC_OK) {
		distrust(q, failure(q, status, message));
		return;
	}
	if (kubemsg_decode(&kubemsg_preferred_reply, body, q->arena, &lists, &err) < 0) {
		distrust(q, err.msg);
		return;
	}
	wrong = nonsense(q, &lists);
	if (wrong)
		distrust(q, wrong);
	else
		finish(q, &lists.v[0]);
}

static void got_options(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct plugin_options options = { 0 };
	struct question *q = arg;
	struct err err = { 0 };
	struct peer *peer;

	if (!q->g) {
		question_free(q);
		return;
	}
	peer = q->peers[q->at];
	if (status != RPC_OK) {
		distrust(q, failure(q, status, message));
		return;
	}
	if (kubemsg_decode(&kubemsg_options, body, q->arena, &options, &err) < 0) {
		distrust(q, err.msg);
		return;
	}
	peer->known = options.preferred_allocation;
	peer->mute = !options.preferred_allocation;
	ask_peer(q);
}

/* May be asked now; else the reason is the question's. */
static bool is_worth(struct question *q, const struct peer *peer)
{
	q->random = q->random || peer->mute;
	if (peer->mute)
		q->why = arena_printf(q->arena, "%s has no preferred allocation", peer->path);
	else if (peer->distrust_until_ms > clock_mono_ms() && !q->why)
		q->why = arena_printf(q->arena, "%s failed a moment ago", peer->path);
	return !peer->mute && peer->distrust_until_ms <= clock_mono_ms();
}

static void ask_peer(struct question *q)
{
	struct preferred_container want = { .available = q->available, .size = (int)q->size };
	const struct preferred_request request = { &want, 1 };
	int64_t left = q->until_ms - clock_mono_ms();
	struct peer *peer;

	while (q->at < q->n_peers && !is_worth(q, q->peers[q->at]))
		q->at++;
	if (q->at == q->n_peers) {
		if (!q->why)
			q->why = arena_printf(q->arena, "no socket of a plugin for %s was found",
					      q->resource);
		finish(q, NULL);
		return;
	}
	if (left <= 0) {
		q->why = LATE;
		finish(q, NULL);
		return;
	}
	if (q->at + 1 < q->n_peers)
		left = (left + 1) / 2; /* one that hangs leaves time for the next one */
	peer = q->peers[q->at];
	if (!peer->channel)
		peer->channel = rpc_channel_open(q->g->rpc, peer->path, ANSWER_BYTES_MAX);
	if (peer->known)
		rpc_call_unary(peer->channel, PATH_PREFERRED,
			       kubemsg_encode(&kubemsg_preferred, &request, q->arena),
			       (unsigned)left, preferred, q);
	else
		rpc_call_unary(peer->channel, PATH_OPTIONS, (struct bytes) { NULL, 0 },
			       (unsigned)left, got_options, q);
}

static void begin(void *arg)
{
	struct question *q = arg;

	q->timer = NULL;
	ask_peer(q);
}

void kubeclient_gpuplugin_prefer(struct gpuplugin *g, const char *resource,
				 const struct ids *available, size_t size, unsigned timeout_ms,
				 gpuplugin_done_fn done, void *arg)
{
	struct question *q = xcalloc(1, sizeof(*q));
	struct peer *peer, *next;
	struct socket_id id;

	q->g = g;
	q->arena = arena_new(4096);
	q->resource = arena_strdup(q->arena, resource);
	q->available.v = arena_array(q->arena, available->n, sizeof(*q->available.v));
	for (; q->available.n < available->n; q->available.n++)
		q->available.v[q->available.n] =
			arena_strdup(q->arena, available->v[q->available.n]);
	q->size = size;
	q->until_ms = clock_mono_ms() + timeout_ms;
	q->done = done;
	q->arg = arg;
	LIST_INSERT_HEAD(&g->questions, q, link);
	/* Some plugins take a new name with every start: those that vanished are forgotten. */
	for (peer = LIST_FIRST(&g->peers); peer; peer = next) {
		next = LIST_NEXT(peer, link);
		if (!peer->questions && !rpc_socket_id(peer->path, &id))
			peer_free(peer);
	}
	search(q);
	/* An answer that is known already, or late after the search, still comes later. */
	q->timer = rpc_after(g->rpc, 0, begin, q);
}

/* One whose call is under way is freed when that comes back. */
static void abandon(struct question *q)
{
	LIST_REMOVE(q, link);
	q->g = NULL;
	q->done(q->arg, NULL, false, "railmated is stopping");
	if (!q->timer)
		return;
	rpc_timer_cancel(q->timer);
	question_free(q);
}

void kubeclient_gpuplugin_close(struct gpuplugin *g)
{
	struct question *q;
	struct peer *peer;

	if (!g)
		return;
	while ((q = LIST_FIRST(&g->questions)))
		abandon(q);
	while ((peer = LIST_FIRST(&g->peers)))
		peer_free(peer);
	free(g);
}
