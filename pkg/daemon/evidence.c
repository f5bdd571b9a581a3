#include "daemon/evidence-internal.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/binding-internal.h"
#include "daemon/daemon.h"
#include "daemon/service-internal.h"
#include "kubeclient/podres.h"
#include "kubeclient/runtime.h"
#include "rpc/rpc.h"

#define ASK_TIMEOUT_MS 1000
#define ASK_AGAIN_MS   100

struct evidence {
	struct rpc *rpc;
	const struct daemon_options *opt;
	struct podres *(*open_podres)(void *ctx);
	void (*done)(void *ctx);
	void *ctx;
	struct arena *arena; /* of the sentences; the rpc thread's while it asks */
	struct binding_facts facts;
	bool known; /* main thread */

	uv_async_t wake;
	/* rpc thread */
	struct runtime *runtime;
	struct podres *podres; /* the daemon's; NULL: not asked for yet */
	struct rpc_timer *timer;
	int64_t since_ms;     /* of the question that is asked */
	unsigned patience_ms; /* of each: one that starts needs a while */
	bool looking, warned, closing;
};

/* --- facts without a question --- */

/* The path where runtimes look by default; another one was chosen by the operator. */
static const char *cdi_dir_obstacle(const char *dir, struct arena *a)
{
	if (str_eq(dir, CDI_DIR_DEFAULT) && file_is_in_image("/", dir))
		return arena_printf(
			a, "%s is not a folder of the host (deploy/components/late mounts it)",
			dir);
	if (access(dir, W_OK) == 0)
		return NULL;
	if (errno == ENOENT && access(dirname(arena_strdup(a, dir)), W_OK) == 0)
		return NULL; /* it is made with the first spec */
	return arena_printf(a, "CDI specs cannot be written to %s: %s", dir, strerror(errno));
}

static const char *cdi_obstacle(const struct daemon_options *opt, struct arena *a)
{
	const char *why = cdi_dir_obstacle(opt->cdi_dir, a);

	if (why)
		return why;
	if (opt->cdi == CDI_OFF)
		return "--cdi=off says that this node has no CDI";
	if (!opt->pod_resources)
		return "--pod-resources=off forbids asking which container starts";
	return NULL;
}

/* --- on the rpc thread --- */

static void again(struct evidence *e, void (*ask)(void *arg))
{
	e->timer = rpc_after(e->rpc, ASK_AGAIN_MS, ask, e);
}

static bool is_patient(const struct evidence *e)
{
	return clock_mono_ms() - e->since_ms < e->patience_ms;
}

static void ask_kubelet(void *arg);

/* The kubelet's version is not known before we register. Get is on from 1.34; a kubelet that has it
 * by its feature gate and passes no CDI devices on is recognized by its question when it registers
 * us (plugin_late_check_kubelet()). */
static const char *no_get(const struct evidence *e)
{
	if (e->opt->cdi == CDI_ON)
		return NULL;
	return "it is not known whether this kubelet passes CDI devices on: its PodResources has no Get, so it is older than 1.34";
}

static void kubelet_answered(void *arg, enum podres_result result, const struct pod_list *pods,
			     const char *why)
{
	struct evidence *e = arg;
	enum podres_support support = kubeclient_podres_state(e->podres).support;

	(void)result;
	(void)pods;
	if (e->closing)
		return;
	if (support == PODRES_UNKNOWN && is_patient(e)) {
		again(e, ask_kubelet);
		return;
	}
	if (support == PODRES_UNKNOWN)
		e->facts.kubelet = arena_printf(
			e->arena, "the kubelet's PodResources does not answer: %s", why);
	else if (support == PODRES_NOTHING)
		e->facts.kubelet = "this kubelet is older than 1.27";
	else if (support == PODRES_LIST)
		e->facts.kubelet = no_get(e);
	uv_async_send(&e->wake);
}

static void ask_kubelet(void *arg)
{
	struct evidence *e = arg;

	e->timer = NULL;
	kubeclient_podres_ask(e->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = "",
							  .name = "",
							  .timeout_ms = ASK_TIMEOUT_MS },
			      kubelet_answered, e);
}

/* Late binding is out of the question already, or the kubelet is asked as well. */
static void runtime_done(struct evidence *e)
{
	if (e->facts.runtime) {
		uv_async_send(&e->wake);
		return;
	}
	e->since_ms = clock_mono_ms();
	e->podres = e->open_podres(e->ctx);
	e->timer = rpc_after(e->rpc, 0, ask_kubelet, e);
}

static void ask_runtime(void *arg);

static const char *no_cdi(struct evidence *e, const struct runtime_answer *answer)
{
	if (answer->cdi == RUNTIME_CDI || e->opt->cdi == CDI_ON)
		return NULL;
	if (answer->cdi == RUNTIME_NO_CDI)
		return arena_strdup(e->arena, answer->sentence);
	return arena_printf(e->arena,
			    "it is not known whether the container runtime reads CDI specs: %s",
			    answer->sentence);
}

static const char *passes_ids(struct evidence *e, const struct runtime_answer *answer)
{
	if (answer->cni == RUNTIME_CNI_KEEPS_IDS)
		return NULL;
	if (answer->cni == RUNTIME_CNI_PASSES_IDS)
		return arena_printf(e->arena, "%s, of which only railmate-cni can read slots",
				    answer->cni_sentence);
	return arena_printf(e->arena,
			    "it is not known whether a CNI plugin would be handed a slot: %s",
			    answer->cni_sentence);
}

static void runtime_answered(void *arg, const struct runtime_answer *answer)
{
	struct evidence *e = arg;

	if (e->closing)
		return;
	if (answer->cdi == RUNTIME_SILENT && is_patient(e)) {
		again(e, ask_runtime);
		return;
	}
	e->facts.runtime = no_cdi(e, answer);
	e->facts.cni = passes_ids(e, answer);
	runtime_done(e);
}

static void open_runtime(struct evidence *e)
{
	if (!e->runtime)
		e->runtime = kubeclient_runtime_open(e->rpc, e->opt->root, e->opt->runtime_socket);
}

static void ask_runtime(void *arg)
{
	struct evidence *e = arg;

	e->timer = NULL;
	kubeclient_runtime_ask(e->runtime, ASK_TIMEOUT_MS, runtime_answered, e);
}

static void begin(void *arg)
{
	static const struct runtime_answer not_asked = {
		.sentence = "--runtime-socket=none forbids asking it",
		.cni_sentence = "--runtime-socket=none forbids asking the container runtime",
		.cdi = RUNTIME_CDI_UNKNOWN
	};
	struct evidence *e = arg;

	e->since_ms = clock_mono_ms();
	if (e->opt->ask_runtime) {
		open_runtime(e);
		ask_runtime(e);
	} else {
		runtime_answered(e, &not_asked);
	}
}

/* --- afterwards --- */

static void answered(void *arg, const struct runtime_answer *answer)
{
	struct evidence *e = arg;

	e->looking = false;
	if (e->closing || e->warned || answer->cni != RUNTIME_CNI_PASSES_IDS)
		return;
	e->warned = true;
	log_warn(
		"binding",
		"a CNI plugin that hands device ids on came after binding auto had chosen late reason=%s",
		answer->cni_sentence);
}

static void probe_runtime(void *arg)
{
	struct evidence *e = arg;

	if (e->closing || e->looking || e->warned)
		return;
	open_runtime(e);
	e->looking = true;
	kubeclient_runtime_ask(e->runtime, ASK_TIMEOUT_MS, answered, e);
}

void evidence_close(struct evidence *e)
{
	if (!e)
		return;
	e->closing = true;
	rpc_timer_cancel(STEAL(e->timer));
	kubeclient_runtime_close(STEAL(e->runtime));
}

/* --- on the main thread --- */

static void on_wake(uv_async_t *wake)
{
	struct evidence *e = wake->data;

	e->known = true;
	e->done(e->ctx);
}

struct evidence *evidence_new(struct uv_loop_s *loop, struct rpc *rpc,
			      const struct daemon_options *opt,
			      struct podres *(*open_podres)(void *ctx), void (*done)(void *ctx),
			      void *ctx)
{
	struct evidence *e = xcalloc(1, sizeof(*e));

	*e = (struct evidence) { .rpc = rpc,
				 .opt = opt,
				 .patience_ms = service_patience_ms(opt->pod_resources_timeout_ms),
				 .open_podres = open_podres,
				 .done = done,
				 .ctx = ctx,
				 .arena = arena_new(1024) };
	uv_async_init(loop, &e->wake, on_wake);
	e->wake.data = e;
	e->facts.cdi = cdi_obstacle(opt, e->arena);
	e->known = e->facts.cdi != NULL;
	if (!e->known)
		rpc_post(rpc, begin, e);
	return e;
}

const struct binding_facts *evidence_facts(const struct evidence *e)
{
	return e->known ? &e->facts : NULL;
}

void evidence_ask_again(struct evidence *e)
{
	if (e->opt->ask_runtime)
		rpc_post(e->rpc, probe_runtime, e);
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	arena_free(e->arena);
	free(e);
}
