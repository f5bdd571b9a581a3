#include "kubelet.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "render/render.h"

int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct json *report_begin(struct report *r, const char *event)
{
	*r = (struct report) { .text = STRBUF_INIT };
	json_init(&r->json, &r->text, 0);
	json_begin_object(&r->json);
	json_kv_string(&r->json, "event", event);
	json_kv_int(&r->json, "t", now_us());
	return &r->json;
}

struct json *report_answer(struct report *r, const struct command *cmd, const char *event)
{
	report_begin(r, event);
	json_kv_int(&r->json, "line", (int64_t)cmd->number);
	return &r->json;
}

void report_end(struct report *r)
{
	json_end_object(&r->json);
	strbuf_putc(&r->text, '\n');
	fwrite(strbuf_str(&r->text), 1, r->text.len, stdout);
	fflush(stdout);
	strbuf_done(&r->text);
}

void report_ids(struct json *j, const char *key, const struct ids *ids)
{
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < ids->n; i++)
		json_put_string(j, ids->v[i]);
	json_end_array(j);
}

/* The first resource that sets a variable wins, as in the real one's merge. */
static bool env_set_before(const struct fake_container *c, size_t held, const char *key)
{
	for (size_t h = 0; h < held; h++) {
		for (size_t i = 0; i < c->held[h].edits.n_envs; i++) {
			if (str_eq(c->held[h].edits.envs[i].key, key))
				return true;
		}
	}
	return false;
}

static void report_envs(struct json *j, const struct fake_container *c, bool conflicts)
{
	for (size_t h = 0; h < c->n_held; h++) {
		for (size_t i = 0; i < c->held[h].edits.n_envs; i++) {
			const struct kv *kv = &c->held[h].edits.envs[i];

			if (env_set_before(c, h, kv->key) != conflicts)
				continue;
			if (conflicts)
				json_put_string(j, kv->key);
			else
				json_kv_string(j, kv->key, kv->value);
		}
	}
}

static void report_edits(struct json *j, const struct fake_container *c)
{
	json_key(j, "env");
	json_begin_object(j);
	report_envs(j, c, false);
	json_end_object(j);
	json_key(j, "conflicts");
	json_begin_array(j);
	report_envs(j, c, true);
	json_end_array(j);
	json_key(j, "device_nodes");
	json_begin_array(j);
	for (size_t h = 0; h < c->n_held; h++)
		render_json_devices(&c->held[h].edits, j);
	json_end_array(j);
	json_key(j, "mounts");
	json_begin_array(j);
	for (size_t h = 0; h < c->n_held; h++)
		render_json_mounts(&c->held[h].edits, j);
	json_end_array(j);
}

static void report_calls(struct json *j, const struct fake_container *c)
{
	json_key(j, "calls");
	json_begin_array(j);
	for (size_t h = 0; h < c->n_held; h++)
		json_put_string(j, c->held[h].resource);
	json_end_array(j);
	json_key(j, "rpcs");
	json_begin_array(j);
	for (size_t h = 0; h < c->n_held; h++) {
		const struct allocation *a = &c->held[h];

		json_begin_object(j);
		json_kv_string(j, "resource", a->resource);
		json_kv_int(j, "preferred_us", a->preferred_us);
		json_kv_int(j, "offered", (int64_t)a->offered);
		report_ids(j, "preferred", &a->preferred);
		json_kv_int(j, "allocate_us", a->allocate_us);
		json_end_object(j);
	}
	json_end_array(j);
}

void report_allocations(struct json *j, const struct fake_container *c)
{
	json_kv_string(j, "name", c->name);
	json_key(j, "devices");
	json_begin_object(j);
	for (size_t h = 0; h < c->n_held; h++)
		report_ids(j, c->held[h].resource, &c->held[h].ids);
	json_end_object(j);
	report_edits(j, c);
	report_calls(j, c);
	json_kv_int(j, "us", c->took_us);
}

void answer_simple(struct command *cmd, const char *event, const char *key, const char *value)
{
	struct report r;
	struct json *j = report_answer(&r, cmd, event);

	if (key)
		json_kv_string(j, key, value);
	report_end(&r);
	command_done(cmd);
}

void answer_error(struct command *cmd, const char *fmt, ...)
{
	char sentence[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	answer_simple(cmd, "error", "message", sentence);
}

const char *status_name(enum rpc_status status)
{
	static const char *const names[] = {
		"OK",
		"Canceled",
		"Unknown",
		"InvalidArgument",
		"DeadlineExceeded",
		"NotFound",
		"AlreadyExists",
		"PermissionDenied",
		"ResourceExhausted",
		"FailedPrecondition",
		"Aborted",
		"OutOfRange",
		"Unimplemented",
		"Internal",
		"Unavailable",
		"DataLoss",
		"Unauthenticated",
	};

	return (size_t)status < ARRAY_LEN(names) ? names[status] : "Unknown";
}
