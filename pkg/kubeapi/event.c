#include "kubeapi/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* The API server's limits, in bytes. */
#define NOTE_MAX     1024
#define INSTANCE_MAX 128

static void write_metadata(struct json *j, const struct event *e)
{
	_cleanup_free_ char *about =
		e->pod ? xasprintf("%s\n%s\n%s", e->ns, e->pod, e->uid ? e->uid : "")
		       : xstrdup(e->node);
	_cleanup_free_ char *at = e->about ? xasprintf("\n%" PRId64, e->wall_ms) : xstrdup("");
	_cleanup_free_ char *all =
		xasprintf("%s\n%s\n%s\n%s%s", about, e->action, e->reason, e->note, at);
	char name[40];

	snprintf(name, sizeof(name), "railmate-%016" PRIx64, str_hash(all));
	json_key(j, "metadata");
	json_begin_object(j);
	json_kv_string(j, "name", name);
	json_end_object(j);
}

char *kubeapi_event_path(const struct event *e)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	if (!e->pod)
		return xstrdup(EVENT_PATH);
	if (!e->ns || !*e->ns || e->ns[strspn(e->ns, legal)])
		return NULL;
	return xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", e->ns);
}

/* At most max bytes, with a mark where the rest was. */
static void write_cut(struct json *j, const char *key, const char *text, size_t max)
{
	static const char mark[] = "…";
	_cleanup_free_ char *cut = xstrdup(text);

	str_printable(cut, strlen(cut), "");
	if (strlen(cut) > max) {
		cut[max - strlen(mark)] = '\0';
		str_utf8_trim(cut);
		strcat(cut, mark); /* never longer than max */
	}
	json_kv_string(j, key, cut);
}

void kubeapi_event_write(const struct event *e, struct strbuf *out)
{
	_cleanup_free_ char *instance = xasprintf("railmated-%.*s", INSTANCE_MAX - 10, e->node);
	const char *uid = e->pod ? e->uid : e->node;
	time_t seconds = (time_t)(e->wall_ms / 1000);
	char text[32], whole[64];
	struct json j;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(whole, sizeof(whole), "%s.%03d000Z", text, (int)(e->wall_ms % 1000));
	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "events.k8s.io/v1");
	json_kv_string(&j, "kind", "Event");
	write_metadata(&j, e);
	json_kv_string(&j, "eventTime", whole);
	json_kv_string(&j, "type", e->normal ? "Normal" : "Warning");
	json_kv_string(&j, "action", e->action);
	json_kv_string(&j, "reason", e->reason);
	write_cut(&j, "note", e->note, NOTE_MAX);
	/* A node by its name in place of a UID, as the kubelet does: `kubectl describe node` looks
	 * for both. */
	json_key(&j, "regarding");
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "v1");
	json_kv_string(&j, "kind", e->pod ? "Pod" : "Node");
	if (e->pod)
		json_kv_string(&j, "namespace", e->ns);
	json_kv_string(&j, "name", e->pod ? e->pod : e->node);
	if (!e->pod || (uid && *uid))
		json_kv_string(&j, "uid", uid);
	json_end_object(&j);
	json_kv_string(&j, "reportingController", "railmated");
	json_kv_string(&j, "reportingInstance", instance);
	json_end_object(&j);
}
