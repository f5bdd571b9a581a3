#include "kubeapi/condition.h"

#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

char *kubeapi_condition_path(const char *node)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

	if (!*node || *node == '.' || node[strspn(node, legal)])
		return NULL;
	return xasprintf("/api/v1/nodes/%s/status", node);
}

/* metav1.Time: seconds. */
static void write_time(struct json *j, const char *key, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_kv_string(j, key, text);
}

void kubeapi_condition_write(const struct condition *c, struct strbuf *out)
{
	static const struct {
		const char *status, *reason;
	} words[] = {
		[CONDITION_FALSE] = { "False", "LinksAreDownOrDegraded" },
		[CONDITION_TRUE] = { "True", "LinksAreUp" },
		[CONDITION_UNKNOWN] = { "Unknown", "NoLinks" },
	};
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_key(&j, "status");
	json_begin_object(&j);
	json_key(&j, "conditions");
	json_begin_array(&j);
	json_begin_object(&j);
	json_kv_string(&j, "type", CONDITION_TYPE);
	json_kv_string(&j, "status", words[c->status].status);
	json_kv_string(&j, "reason", words[c->status].reason);
	json_kv_string(&j, "message", c->message);
	write_time(&j, "lastHeartbeatTime", c->now_ms);
	write_time(&j, "lastTransitionTime", c->since_ms);
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
	json_end_object(&j);
}
