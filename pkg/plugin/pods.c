/* Questions of every resource to PodResources beside the kubelet's calls. */
#include "plugin/plugin-internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pending.h"
#include "kubeclient/podres.h"
#include "pods/identify.h"
#include "pool/node.h"

#define ADMISSION_MS 50 /* from one call of the kubelet to the next, and to its record */

void plugin_note_admission(struct plugin *p)
{
	if (p->env->podres)
		kubeclient_podres_note_admission(p->env->podres, ADMISSION_MS);
}

void plugin_pods_warn_old(struct plugin *p)
{
	if (p->warned_old)
		return;
	p->warned_old = true;
	log_info(
		"kubelet",
		"this kubelet is older than 1.27: VFs are chosen without knowing the GPUs resource=%s",
		p->resource);
}

static void warn_if_old(struct plugin *p)
{
	if (kubeclient_podres_state(p->env->podres).support == PODRES_NOTHING)
		plugin_pods_warn_old(p);
}

static void primed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct plugin *p = pending_end(arg);

	if (p && result == PODRES_OK) {
		_cleanup_arena_ struct arena *a = arena_new(4096);
		struct pods_question q = { .resource = p->resource };

		/* A container under admission during the List must not count as seen before. */
		if (p->preferred == p->preferred_before)
			pods_identify(pods, &q, p->node->inv, &p->seen, a);
		p->primed = true;
		p->primed_ms = clock_mono_ms();
	} else if (p) {
		warn_if_old(p);
	}
}

static void probed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct plugin *p = pending_end(arg);

	if (p)
		warn_if_old(p);
}

void plugin_pods_reset(struct plugin *p)
{
	p->warned_old = false;
	p->allocatable_ms = 0;
	if (p->env->podres)
		kubeclient_podres_reset(p->env->podres);
}

/* Asks in advance for the kubelet's version, and, once, for containers with GPUs and no VFs. */
void plugin_pods_prime(struct plugin *p)
{
	struct podres *pods = p->env->podres;

	if (!pods)
		return;
	if (!p->primed) {
		pending_cancel(&p->priming);
		p->preferred_before = p->preferred;
		kubeclient_podres_ask(pods,
				      &(struct podres_question) {
					      .kind = PODRES_ASK_LIST_QUIETLY,
					      .timeout_ms = p->env->pod_resources_timeout_ms },
				      primed, pending_new(p, &p->priming));
	} else if (kubeclient_podres_state(pods).support == PODRES_UNKNOWN) {
		pending_cancel(&p->probing);
		kubeclient_podres_ask(pods,
				      &(struct podres_question) {
					      .kind = PODRES_ASK_GET,
					      .ns = "",
					      .name = "",
					      .timeout_ms = p->env->pod_resources_timeout_ms },
				      probed, pending_new(p, &p->probing));
	}
}

void plugin_pods_done(struct plugin *p)
{
	pending_cancel(&p->priming);
	pending_cancel(&p->probing);
}
