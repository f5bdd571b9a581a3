#include "kubeclient/kubeclient-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"

#define ANSWER_BYTES_MAX (4u << 20)

/* --- the decision --- */

/* Versions as one number; docs/design/kubelet.md §4 has the facts. */
#define VERSION(major, minor, patch) ((major)*UINT64_C(1000000) + (minor)*UINT64_C(1000) + (patch))

struct known {
	const char *name;
	uint64_t before; /* this one has no CDI at all */
	uint64_t field;	 /* from this one on it reads the field of CRI; before, only annotations,
			    which new  kubelets do not send */
	uint64_t on; /* from this one on CDI is on unless the configuration switches it off; before,
			it has to switch it on */
	const char *from;
};

static const struct known runtimes[] = {
	{ "containerd", VERSION(1, 7, 0), VERSION(1, 7, 2), VERSION(2, 0, 0), "1.7.2" },
	{ "cri-o", VERSION(1, 23, 0), VERSION(1, 28, 0), 0, "1.28" },
};

enum setting { SAYS_NOTHING, SAYS_ON, SAYS_OFF };

static enum setting setting_of(const char *config)
{
	_cleanup_arena_ struct arena *a = arena_new(65536);
	const struct item *doc, *cdi;

	if (!config || document_parse(config, strlen(config), "config", a, &doc, NULL) < 0)
		return SAYS_NOTHING;
	cdi = item_get(doc, "enableCDI");
	if (!cdi || cdi->type != ITEM_BOOL)
		return SAYS_NOTHING;
	return cdi->boolean ? SAYS_ON : SAYS_OFF;
}

static const char *name_of(const char *name, const char *version, struct arena *a)
{
	return arena_printf(a, "%s %s",
			    document_shown(*name ? name : "a runtime without a name", a),
			    document_shown(version, a));
}

enum runtime_cdi kubeclient_runtime_judge(const char *name, const char *version, const char *config,
					  struct arena *a, const char **ret_sentence)
{
	const struct known *known = NULL;
	unsigned major, minor, patch = 0;
	uint64_t number = 0;
	enum setting setting = setting_of(config);
	const char *who = name_of(name, version, a);

	*ret_sentence = NULL;
	for (size_t i = 0; i < ARRAY_LEN(runtimes) && !known; i++)
		known = strcmp(runtimes[i].name, name) ? NULL : &runtimes[i];
	/* "v1.7.27", "1.6.20~ds1", "2.1.0-rc.1": the first three numbers. */
	if (sscanf(version + (*version == 'v'), "%3u.%3u.%3u", &major, &minor, &patch) >= 2)
		number = VERSION(major, minor, patch);
	if (!known || !number) {
		*ret_sentence = arena_printf(a, "%s is not known here", who);
		return RUNTIME_CDI_UNKNOWN;
	}
	if (number < known->before) {
		*ret_sentence =
			arena_printf(a, "%s has no CDI, which came with %s", who, known->from);
		return RUNTIME_NO_CDI;
	}
	if (number < known->field) {
		*ret_sentence =
			arena_printf(a, "%s takes CDI devices only from kubelets before 1.32", who);
		return RUNTIME_CDI_UNKNOWN;
	}
	if (known->on && setting == SAYS_OFF) {
		*ret_sentence = arena_printf(
			a, "CDI is switched off in %s: set enable_cdi = true in its configuration",
			who);
		return RUNTIME_NO_CDI;
	}
	if (number < known->on && setting == SAYS_NOTHING) {
		*ret_sentence =
			arena_printf(a, "%s does not report whether enable_cdi is set", who);
		return RUNTIME_CDI_UNKNOWN;
	}
	return RUNTIME_CDI;
}

/* --- its CNI plugins --- */

/* They ask the kubelet for the devices of a pod, and hand the ids to the plugins of the pod's
 * networks. */
static const char *const passers[] = { "multus", "multus-shim", "danm" };

struct cni_seen {
	bool strange; /* one whose type is not reported */
	size_t n;     /* beside loopback, which every node has */
	const char *passer;
};

static void see_plugin(const struct item *plugin, struct cni_seen *seen)
{
	const struct item *network = item_get(plugin, "Network");
	const char *type = network ? item_string(network, "type") : NULL;

	seen->strange |= !type;
	if (!type || !strcmp(type, "loopback"))
		return;
	seen->n++;
	for (size_t i = 0; i < ARRAY_LEN(passers); i++) {
		if (!strcmp(type, passers[i]))
			seen->passer = passers[i];
	}
}

enum runtime_cni kubeclient_runtime_judge_cni(const char *who, const char *cni, struct arena *a,
					      const char **ret_sentence)
{
	const struct item *doc = NULL, *networks = NULL;
	struct cni_seen seen = { 0 };

	if (cni && document_parse(cni, strlen(cni), "cniconfig", a, &doc, NULL) == 0)
		networks = item_get(doc, "Networks");
	for (size_t i = 0; networks && networks->type == ITEM_LIST && i < networks->n_kids; i++) {
		const struct item *config = item_get(&networks->kids[i], "Config");
		const struct item *plugins = config ? item_get(config, "Plugins") : NULL;

		if (!plugins || plugins->type != ITEM_LIST) {
			seen.strange = true;
			continue;
		}
		for (size_t k = 0; k < plugins->n_kids; k++)
			see_plugin(&plugins->kids[k], &seen);
	}
	*ret_sentence = NULL;
	if (seen.passer) {
		*ret_sentence = arena_printf(a, "the CNI plugin %s hands device ids on to others",
					     seen.passer);
		return RUNTIME_CNI_PASSES_IDS;
	}
	if (!networks || seen.strange)
		*ret_sentence =
			arena_printf(a, "%s does not report which CNI plugins it uses", who);
	else if (!seen.n)
		*ret_sentence = arena_printf(a, "%s has no CNI network yet", who);
	return *ret_sentence ? RUNTIME_CNI_UNKNOWN : RUNTIME_CNI_KEEPS_IDS;
}

/* --- the question --- */

/* Where they listen: containerd, CRI-O; the containerd of k3s and RKE2, of k0s. */
static const char *const usual[] = { "run/containerd/containerd.sock", "run/crio/crio.sock",
				     "run/k3s/containerd/containerd.sock",
				     "run/k0s/containerd.sock" };

struct runtime {
	struct rpc *rpc;
	char *sockets[ARRAY_LEN(usual)];
	size_t n_sockets;
	LIST_HEAD(, question) questions;
};

/* Outlives the runtime if that goes first. */
struct question {
	LIST_ENTRY(question) link;
	struct runtime *r; /* NULL: gone */
	struct arena *arena;
	struct rpc_channel *channel;
	struct rpc_timer *timer;
	size_t at;			/* the socket that is asked */
	struct runtime_version version; /* its own report */
	const char *silent, *mute; /* why the sockets so far are none: no listener; not a runtime */
	unsigned timeout_ms;
	runtime_done_fn done;
	void *arg;
};

struct runtime *kubeclient_runtime_open(struct rpc *rpc, const char *root, const char *socket)
{
	struct runtime *r = xcalloc(1, sizeof(*r));

	r->rpc = rpc;
	LIST_INIT(&r->questions);
	if (socket) {
		r->sockets[r->n_sockets++] = xstrdup(socket);
		return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		r->sockets[r->n_sockets++] =
			xasprintf("%s%s%s", root, str_eq(root, "/") ? "" : "/", usual[i]);
	return r;
}

static void question_free(struct question *q)
{
	rpc_channel_close(q->channel);
	arena_free(q->arena);
	free(q);
}

static void finish(struct question *q, const struct runtime_answer *answer)
{
	LIST_REMOVE(q, link);
	q->done(q->arg, answer);
	question_free(q);
}

static struct runtime_answer nothing_known(enum runtime_cdi cdi, const char *sentence)
{
	return (struct runtime_answer) { .cdi = cdi,
					 .sentence = sentence,
					 .cni_sentence = sentence };
}

static void ask_next(struct question *q);

/* Not this socket. An answer that explains why is a better reason than a socket without any answer.
 */
static void pass(struct question *q, bool silent, const char *message)
{
	const char **why = silent ? &q->silent : &q->mute;

	if (!*why)
		*why = arena_printf(q->arena, "%s: %s", q->r->sockets[q->at], message);
	rpc_channel_close(STEAL(q->channel));
	q->at++;
	ask_next(q);
}

static bool is_silence(enum rpc_status status)
{
	return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
	       status == RPC_CANCELLED;
}

static void judge(struct question *q, const struct runtime_status *s)
{
	struct runtime_answer answer = { .name = name_of(q->version.name, q->version.version,
							 q->arena) };

	answer.cdi = kubeclient_runtime_judge(q->version.name, q->version.version, s->config,
					      q->arena, &answer.sentence);
	answer.cni =
		kubeclient_runtime_judge_cni(answer.name, s->cni, q->arena, &answer.cni_sentence);
	if (answer.sentence)
		answer.sentence =
			arena_printf(q->arena, "%s: %s", q->r->sockets[q->at], answer.sentence);
	finish(q, &answer);
}

/* Without its configuration, its version has to do. */
static void got_status(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct question *q = arg;
	struct runtime_status s = { NULL, NULL };

	if (!q->r) {
		question_free(q);
		return;
	}
	if (status != RPC_OK && is_silence(status))
		pass(q, true, message);
	else if (status != RPC_OK ||
		 kubemsg_decode(&kubemsg_runtime_status, body, q->arena, &s, NULL) < 0)
		judge(q, &(struct runtime_status) { NULL, NULL });
	else
		judge(q, &s);
}

static void got_version(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct question *q = arg;
	struct err err = { 0 };

	if (!q->r)
		question_free(q);
	else if (status == RPC_UNIMPLEMENTED) /* containerd with its CRI part disabled, for another
						 runtime's sake */
		pass(q, false, "it does not speak CRI v1");
	else if (status != RPC_OK)
		pass(q, is_silence(status), message);
	else if (kubemsg_decode(&kubemsg_runtime_version, body, q->arena, &q->version, &err) < 0)
		pass(q, false, err.msg);
	else
		rpc_call_unary(q->channel, PATH_RUNTIME_STATUS,
			       kubemsg_encode(&kubemsg_runtime_status_request, NULL, q->arena),
			       q->timeout_ms, got_status, q);
}

static void give_up(struct question *q)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;
	struct runtime_answer answer;

	if (q->silent) {
		answer = nothing_known(RUNTIME_SILENT, q->silent);
	} else if (q->mute) {
		answer = nothing_known(RUNTIME_CDI_UNKNOWN, q->mute);
	} else {
		for (size_t i = 0; i < q->r->n_sockets; i++)
			strbuf_printf(&all, "%s%s", i ? ", " : "", q->r->sockets[i]);
		answer = nothing_known(
			RUNTIME_CDI_UNKNOWN,
			arena_printf(q->arena, "no socket of it is here (%s)", all.s));
	}
	finish(q, &answer);
}

static void ask_next(struct question *q)
{
	struct runtime *r = q->r;

	while (q->at < r->n_sockets && access(r->sockets[q->at], F_OK) < 0)
		q->at++;
	if (q->at == r->n_sockets) {
		give_up(q);
		return;
	}
	q->channel = rpc_channel_open(r->rpc, r->sockets[q->at], ANSWER_BYTES_MAX);
	rpc_call_unary(q->channel, PATH_RUNTIME_VERSION, (struct bytes) { NULL, 0 }, q->timeout_ms,
		       got_version, q);
}

static void begin(void *arg)
{
	struct question *q = arg;

	q->timer = NULL;
	ask_next(q);
}

void kubeclient_runtime_ask(struct runtime *r, unsigned timeout_ms, runtime_done_fn done, void *arg)
{
	struct question *q = xcalloc(1, sizeof(*q));

	q->r = r;
	q->arena = arena_new(4096);
	q->timeout_ms = timeout_ms;
	q->done = done;
	q->arg = arg;
	LIST_INSERT_HEAD(&r->questions, q, link);
	q->timer = rpc_after(r->rpc, 0, begin, q);
}

/* One whose call is under way is freed when that comes back. */
static void abandon(struct question *q)
{
	const struct runtime_answer answer = nothing_known(RUNTIME_SILENT, "railmated is stopping");

	LIST_REMOVE(q, link);
	q->r = NULL;
	q->done(q->arg, &answer);
	if (q->timer) {
		rpc_timer_cancel(q->timer);
		question_free(q);
	} else {
		rpc_channel_close(STEAL(q->channel));
	}
}

void kubeclient_runtime_close(struct runtime *r)
{
	struct question *q;

	if (!r)
		return;
	while ((q = LIST_FIRST(&r->questions)))
		abandon(q);
	for (size_t i = 0; i < r->n_sockets; i++)
		free(r->sockets[i]);
	free(r);
}
