/* What every resource asks of PodResources beside the kubelet's calls, and who is told what it
 * said. */
#include "plugin/plugin-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pending.h"
#include "kubeclient/podres.h"
#include "pods/holders.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "tracker/tracker.h"

#define ADMISSION_MS 50 /* from one call of the kubelet to the next, and to its record */

void plugin_saw_list(struct plugin *p, const struct pod_list *pods, int64_t asked_ms)
{
	if (asked_ms >= p->listed_ms) {
		holders_list(p->holders, pods);
		p->listed_ms = asked_ms;
	}
	if (p->env->keeper)
		keeper_reconcile(p->env->keeper, pods, asked_ms);
}

void plugin_saw_pod(struct plugin *p, const char *ns, const char *name, const struct pod *pod,
		    int64_t asked_ms)
{
	bool is_news = asked_ms >= p->listed_ms;

	if (is_news && pod)
		holders_pod(p->holders, pod);
	else if (is_news)
		holders_gone(p->holders, ns, name);
	if (p->env->keeper)
		keeper_reconcile_pod(p->env->keeper, ns, name, pod, asked_ms);
}

void plugin_note_admission(struct plugin *p)
{
	if (p->env->podres)
		podres_note_admission(p->env->podres, ADMISSION_MS);
}

void plugin_pods_tell_old(struct plugin *p)
{
	if (p->told_old)
		return;
	p->told_old = true;
	log_info("kubelet",
		 "%s: this kubelet is older than 1.27: VFs are chosen without knowing the GPUs",
		 p->resource);
}

static void tell_if_old(struct plugin *p)
{
	if (podres_support(p->env->podres) == PODRES_NOTHING)
		plugin_pods_tell_old(p);
}

static void primed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct plugin *p = pending_end(arg);

	(void)why;
	if (p && result == PODRES_OK) {
		plugin_saw_list(p, pods, p->priming_ms);
		/* A container may be under admission by now: then it must not pass for old. */
		if (p->stats.preferred == p->preferred_before)
			seen_pods_note(p->seen, pods, p->resource, p->node->inv);
		p->primed = true;
		p->primed_ms = clock_mono_ms();
	} else if (p) {
		tell_if_old(p);
	}
}

static void probed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct plugin *p = pending_end(arg);

	(void)result;
	(void)pods;
	(void)why;
	if (p)
		tell_if_old(p);
}

void plugin_pods_reset(struct plugin *p)
{
	p->told_old = false;
	p->allocatable_ms = 0;
	if (p->env->podres)
		podres_reset(p->env->podres);
}

/* Find out in advance what kubelet this is, and, once, who has GPUs without ever asking for ours.
 */
void plugin_pods_prime(struct plugin *p)
{
	struct podres *pods = p->env->podres;

	if (!pods)
		return;
	if (!p->primed) {
		pending_cancel(&p->priming);
		p->stats.pod_lists++;
		p->preferred_before = p->stats.preferred;
		p->priming_ms = clock_mono_ms();
		podres_list_quietly(pods, p->env->pod_resources_timeout_ms, primed,
				    pending_new(p, &p->priming));
	} else if (podres_support(pods) == PODRES_UNKNOWN) {
		pending_cancel(&p->probing);
		podres_get(pods, "", "", p->env->pod_resources_timeout_ms, probed,
			   pending_new(p, &p->probing));
	}
}

void plugin_pods_done(struct plugin *p)
{
	pending_cancel(&p->priming);
	pending_cancel(&p->probing);
}
