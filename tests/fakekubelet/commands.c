/* The script's words. */
#include "kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#define WAIT_DEFAULT_MS	 10000
#define START_DEFAULT_MS 5000
#define TIME_MAX_MS	 600000
#define CALL_MAX_BYTES	 (64u << 20)
#define CALL_TIMEOUT_MS	 35000

/* Numbers with a default; false when the command was answered with an error. */
static bool number(struct command *cmd, size_t i, uint64_t max, uint64_t otherwise, uint64_t *ret)
{
	*ret = otherwise;
	if (i >= cmd->argc || !str_to_u64(cmd->argv[i], 10, max, ret))
		return true;
	answer_error(cmd, "%s: '%s' is not a number up to %llu", cmd->argv[0], cmd->argv[i],
		     (unsigned long long)max);
	return false;
}

static struct resource *named_resource(struct command *cmd)
{
	struct resource *r = resource_find(cmd->k, cmd->argv[1]);

	if (!r)
		answer_error(cmd, "no resource %s", cmd->argv[1]);
	return r;
}

static struct pod_entry *named_pod(struct command *cmd)
{
	struct pod_entry *p = pod_find(cmd->k, cmd->argv[1]);

	if (!p || p->admitting) {
		answer_error(cmd, "no admitted pod %s", cmd->argv[1]);
		return NULL;
	}
	return p;
}

static bool on_or_off(struct command *cmd, size_t i, bool *ret)
{
	if (strcmp(cmd->argv[i], "on") != 0 && strcmp(cmd->argv[i], "off") != 0) {
		answer_error(cmd, "%s: on or off, not '%s'", cmd->argv[0], cmd->argv[i]);
		return false;
	}
	*ret = !strcmp(cmd->argv[i], "on");
	return true;
}

static void ok(struct command *cmd)
{
	answer_simple(cmd, "ok", NULL, NULL);
}

static void toggle(struct command *cmd, bool *flag)
{
	if (on_or_off(cmd, 1, flag))
		ok(cmd);
}

/* --- pods --- */

static void run_admit(struct command *cmd)
{
	struct pod_entry *pod;
	struct err err = { 0 };

	if (cmd->k->leaving)
		answer_error(cmd, "the kubelet is leaving");
	else if (pod_parse(cmd->k, cmd->argv + 1, cmd->argc - 1, &pod, &err) < 0)
		answer_error(cmd, "%s", err.msg);
	else
		admit(cmd, pod);
}

/* The devices are free when the next admission or List collects them. */
static void run_remove(struct command *cmd)
{
	struct pod_entry *p = named_pod(cmd);

	if (!p)
		return;
	p->active = false;
	ok(cmd);
}

/* Its DRA drivers have prepared its claims; the next is the sandbox. */
static void run_prepare(struct command *cmd)
{
	struct pod_entry *p = named_pod(cmd);

	if (!p)
		return;
	p->prepared = true;
	ok(cmd);
}

static void run_prestart(struct command *cmd)
{
	struct pod_entry *p = named_pod(cmd);

	if (p)
		prestart(cmd, p);
}

static void run_start(struct command *cmd)
{
	struct pod_entry *p = named_pod(cmd);
	uint64_t timeout_ms;

	if (p && number(cmd, 3, TIME_MAX_MS, START_DEFAULT_MS, &timeout_ms))
		start(cmd, p, cmd->argc > 2 && strcmp(cmd->argv[2], "*") ? cmd->argv[2] : NULL,
		      (unsigned)timeout_ms);
}

static void report_pod(struct json *j, const struct pod_entry *p)
{
	json_begin_object(j);
	json_kv_string(j, "namespace", p->ns);
	json_kv_string(j, "name", p->name);
	json_key(j, "containers");
	json_begin_object(j);
	for (size_t c = 0; c < p->n_containers; c++) {
		json_key(j, p->containers[c].name);
		json_begin_object(j);
		for (size_t h = 0; h < p->containers[c].n_held; h++)
			report_ids(j, p->containers[c].held[h].resource,
				   &p->containers[c].held[h].ids);
		json_end_object(j);
	}
	json_end_object(j);
	json_end_object(j);
}

static void run_pods(struct command *cmd)
{
	struct report r;
	struct json *j = report_answer(&r, cmd, "pods");

	json_key(j, "pods");
	json_begin_array(j);
	for (const struct pod_entry *p = cmd->k->pods; p; p = p->next) {
		if (p->active)
			report_pod(j, p);
	}
	json_end_array(j);
	report_end(&r);
	command_done(cmd);
}

/* --- resources --- */

static void run_wait(struct command *cmd)
{
	bool exactly = cmd->argv[2][0] == '=';
	uint64_t count, timeout_ms;

	cmd->argv[2] += exactly;
	if (number(cmd, 2, SIZE_MAX, 0, &count) &&
	    number(cmd, 3, TIME_MAX_MS, WAIT_DEFAULT_MS, &timeout_ms))
		wait_for(cmd, cmd->argv[1], count, exactly, (unsigned)timeout_ms);
}

static void report_device(struct json *j, const struct device *d)
{
	json_begin_object(j);
	json_kv_string(j, "id", d->id);
	json_kv_bool(j, "healthy", d->healthy);
	json_key(j, "numa");
	json_begin_array(j);
	for (size_t i = 0; i < d->n_nodes; i++)
		json_put_int(j, d->nodes[i]);
	json_end_array(j);
	json_end_object(j);
}

static void report_resource(struct json *j, const struct resource *r)
{
	json_begin_object(j);
	json_kv_string(j, "name", r->name);
	json_kv_bool(j, "registered", r->endpoint && !r->stopped);
	json_kv_bool(j, "preferred_allocation",
		     r->endpoint && r->endpoint->options.preferred_allocation);
	json_kv_bool(j, "pre_start", r->endpoint && r->endpoint->options.pre_start_required);
	json_kv_int(j, "capacity", (int64_t)r->devices.n);
	json_kv_int(j, "allocatable", (int64_t)resource_allocatable(r));
	json_kv_int(j, "allocated", (int64_t)r->allocated.n);
	json_key(j, "devices");
	json_begin_array(j);
	for (size_t i = 0; i < r->devices.n; i++)
		report_device(j, &r->devices.v[i]);
	json_end_array(j);
	json_end_object(j);
}

static void run_list(struct command *cmd)
{
	struct report r;
	struct json *j = report_answer(&r, cmd, "resources");

	json_key(j, "resources");
	json_begin_array(j);
	for (const struct resource *res = cmd->k->resources; res; res = res->next)
		report_resource(j, res);
	json_end_array(j);
	report_end(&r);
	command_done(cmd);
}

static void run_disconnect(struct command *cmd)
{
	struct resource *r = named_resource(cmd);

	if (!r)
		return;
	if (!r->endpoint || !r->endpoint->stream) {
		ok(cmd);
	} else if (r->endpoint->disconnecting) {
		answer_error(cmd, "disconnect: the stream of %s is already ending", r->name);
	} else {
		r->endpoint->disconnecting = cmd;
		rpc_subscription_cancel(r->endpoint->stream);
	}
}

static void run_slow(struct command *cmd)
{
	struct resource *r = named_resource(cmd);
	bool slow;

	if (!r || !on_or_off(cmd, 2, &slow))
		return;
	if (r->endpoint && r->endpoint->stream)
		rpc_subscription_pause(r->endpoint->stream, slow);
	ok(cmd);
}

/* --- a call with bytes of the script's choice --- */

struct raw_call {
	struct command *cmd;
	struct rpc_channel *channel;
};

static void report_hex(struct json *j, const char *key, struct bytes body)
{
	_cleanup_strbuf_ struct strbuf hex = STRBUF_INIT;

	for (size_t i = 0; i < body.len; i++)
		strbuf_printf(&hex, "%02x", body.data[i]);
	json_kv_string(j, key, strbuf_str(&hex));
}

static void on_raw_done(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct raw_call *raw = arg;
	struct command *cmd = raw->cmd;
	struct report r;
	struct json *j = report_answer(&r, cmd, "called");

	json_kv_string(j, "status", status_name(status));
	json_kv_string(j, "message", message);
	json_kv_int(j, "bytes", (int64_t)body.len);
	report_hex(j, "body", body);
	report_end(&r);
	command_done(cmd);
	rpc_channel_close(raw->channel);
	free(raw);
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int parse_hex(const char *text, struct strbuf *out)
{
	for (; *text; text += 2) {
		int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0)
			return -EINVAL;
		strbuf_putc(out, (char)(high << 4 | low));
	}
	return 0;
}

static void run_call(struct command *cmd)
{
	_cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
	struct resource *r = named_resource(cmd);
	struct raw_call *raw;

	if (!r)
		return;
	if (!r->endpoint) {
		answer_error(cmd, "%s is not registered", r->name);
		return;
	}
	if (cmd->argc > 3 && parse_hex(cmd->argv[3], &body) < 0) {
		answer_error(cmd, "call: the body is not lower-case hex");
		return;
	}
	raw = xcalloc(1, sizeof(*raw));
	raw->cmd = cmd;
	raw->channel = rpc_channel_open(cmd->k->rpc, r->endpoint->socket, CALL_MAX_BYTES);
	rpc_call_unary(raw->channel, cmd->argv[2],
		       (struct bytes) { (const uint8_t *)strbuf_str(&body), body.len },
		       CALL_TIMEOUT_MS, on_raw_done, raw);
}

static void run_bench(struct command *cmd)
{
	struct resource *r = named_resource(cmd);

	if (!r)
		return;
	if (r->endpoint)
		bench(cmd, r->endpoint->socket);
	else
		answer_error(cmd, "%s is not registered", r->name);
}

/* --- the kubelet itself --- */

static void run_restart(struct command *cmd)
{
	uint64_t gap_ms;

	if (!number(cmd, 1, TIME_MAX_MS, 0, &gap_ms))
		return;
	if (cmd->k->down)
		answer_error(cmd, "restart: the kubelet is down");
	else
		kubelet_restart(cmd->k, cmd, (unsigned)gap_ms);
}

static void run_down(struct command *cmd)
{
	if (cmd->k->down)
		answer_error(cmd, "down: the kubelet is down already");
	else
		kubelet_down(cmd->k, cmd);
}

static void run_up(struct command *cmd);

static void run_up_again(void *arg)
{
	run_up(arg);
}

/* After `hang die` the old one may still be closing. */
static void run_up(struct command *cmd)
{
	struct err err = { 0 };

	if (!cmd->k->down)
		answer_error(cmd, "up: the kubelet is not down");
	else if (cmd->k->closing)
		rpc_after(cmd->k->rpc, 1, run_up_again, cmd);
	else if (kubelet_up(cmd->k, &err) < 0)
		answer_error(cmd, "%s", err.msg);
	else
		ok(cmd);
}

static void run_refuse(struct command *cmd)
{
	toggle(cmd, &cmd->k->refuse);
}

/* on: Register gets no answer; die: the kubelet goes down at the next Register; off: held calls
 * fail. */
static void run_hang(struct command *cmd)
{
	if (!strcmp(cmd->argv[1], "die")) {
		cmd->k->die_in_register = true;
		ok(cmd);
		return;
	}
	if (!on_or_off(cmd, 1, &cmd->k->hang))
		return;
	if (!cmd->k->hang)
		registration_release_calls(cmd->k);
	ok(cmd);
}

static void run_podlist_fail(struct command *cmd)
{
	toggle(cmd, &cmd->k->pod_list_fail);
}

static void run_podlist_garbage(struct command *cmd)
{
	toggle(cmd, &cmd->k->pod_list_garbage);
}

static void run_podlist_delay(struct command *cmd)
{
	uint64_t ms;

	if (!number(cmd, 1, TIME_MAX_MS, 0, &ms))
		return;
	cmd->k->pod_list_delay_ms = (unsigned)ms;
	ok(cmd);
}

/* double: every List drops the reservation in flight, as the real one does when a pod went away
 * meanwhile. */
static void run_bug(struct command *cmd)
{
	if (strcmp(cmd->argv[1], "double") != 0 && strcmp(cmd->argv[1], "off") != 0) {
		answer_error(cmd, "kubelet-bug: double or off, not '%s'", cmd->argv[1]);
		return;
	}
	cmd->k->drop_reservations = !strcmp(cmd->argv[1], "double");
	ok(cmd);
}

/* The end of each stream waits, as on a busy node: before the connection is looked up, or between
 * that and its being closed. */
static void run_hold_ends(struct command *cmd)
{
	if (!strcmp(cmd->argv[1], "off")) {
		plugin_release_ends(cmd->k);
	} else if (!strcmp(cmd->argv[1], "before") || !strcmp(cmd->argv[1], "between")) {
		cmd->k->hold_ends = !strcmp(cmd->argv[1], "before") ? HOLD_BEFORE : HOLD_BETWEEN;
	} else {
		answer_error(cmd, "hold-ends: before, between or off, not '%s'", cmd->argv[1]);
		return;
	}
	ok(cmd);
}

static void run_lose_lists(struct command *cmd)
{
	uint64_t n;

	if (!number(cmd, 1, 1000, 0, &n))
		return;
	cmd->k->lose_lists = (unsigned)n;
	ok(cmd);
}

/* The reservations of a pod that goes on running: its devices are on offer again, and it is listed
 * with them.
 */
static void run_forget(struct command *cmd)
{
	struct pod_entry *pod = pod_find(cmd->k, cmd->argv[1]);

	if (!pod) {
		answer_error(cmd, "forget: there is no pod %s", cmd->argv[1]);
		return;
	}
	forget_allocated(cmd->k, pod);
	ok(cmd);
}

static void run_runtime(struct command *cmd)
{
	struct err err = { 0 };

	if (runtime_serve(cmd->k, cmd->argv[1], cmd->argv[2], cmd->argv[3],
			  cmd->argc > 4 ? cmd->argv[4] : NULL, cmd->argc > 5 ? cmd->argv[5] : NULL,
			  &err) < 0)
		answer_error(cmd, "%s", err.msg);
	else
		ok(cmd);
}

static void on_slept(void *arg)
{
	ok(arg);
}

static void run_sleep(struct command *cmd)
{
	uint64_t ms;

	if (number(cmd, 1, TIME_MAX_MS, 0, &ms))
		rpc_after(cmd->k->rpc, (unsigned)ms, on_slept, cmd);
}

static void run_quit(struct command *cmd)
{
	struct kubelet *k = cmd->k;

	command_done(cmd);
	kubelet_quit(k);
}

static const struct {
	const char *name;
	size_t min, max; /* arguments */
	void (*run)(struct command *cmd);
	const char *usage;
} commands[] = {
	{ "admit", 2, SIZE_MAX, run_admit,
	  "admit POD [order=random|gpu-first|vf-first|listed] [claim=CLAIM:DRIVER/REQUEST=DEVICE,…] … [init:|sidecar:]CONTAINER:RESOURCE=N,claim:CLAIM[/REQUEST],… …" },
	{ "remove", 1, 1, run_remove, "remove POD" },
	{ "prepare", 1, 1, run_prepare, "prepare POD" },
	{ "dra", 3, SIZE_MAX, dra_call, "dra DRIVER prepare|unprepare NAMESPACE/NAME=UID …" },
	{ "prestart", 1, 1, run_prestart, "prestart POD" },
	{ "start", 1, 3, run_start, "start POD [CONTAINER|* [TIMEOUT_MS]]" },
	{ "pods", 0, 0, run_pods, "pods" },
	{ "list", 0, 0, run_list, "list" },
	{ "wait", 2, 3, run_wait, "wait RESOURCE [=]COUNT [TIMEOUT_MS]" },
	{ "restart", 0, 1, run_restart, "restart [GAP_MS]" },
	{ "down", 0, 0, run_down, "down" },
	{ "up", 0, 0, run_up, "up" },
	{ "disconnect", 1, 1, run_disconnect, "disconnect RESOURCE" },
	{ "slow", 2, 2, run_slow, "slow RESOURCE on|off" },
	{ "refuse", 1, 1, run_refuse, "refuse on|off" },
	{ "hang", 1, 1, run_hang, "hang on|off|die" },
	{ "podlist-fail", 1, 1, run_podlist_fail, "podlist-fail on|off" },
	{ "podlist-garbage", 1, 1, run_podlist_garbage, "podlist-garbage on|off" },
	{ "podlist-delay", 1, 1, run_podlist_delay, "podlist-delay MS" },
	{ "kubelet-bug", 1, 1, run_bug, "kubelet-bug double|off" },
	{ "hold-ends", 1, 1, run_hold_ends, "hold-ends before|between|off" },
	{ "lose-lists", 1, 1, run_lose_lists, "lose-lists COUNT" },
	{ "forget", 1, 1, run_forget, "forget POD" },
	{ "runtime", 3, 5, run_runtime, "runtime SOCKET NAME VERSION [CONFIG [CNI]]" },
	{ "call", 2, 3, run_call, "call RESOURCE METHOD [HEX]" },
	{ "bench", 4, SIZE_MAX, run_bench,
	  "bench RESOURCE allocate|paced COUNT ID… | RESOURCE fresh N ID… | RESOURCE preferred COUNT N ID…" },
	{ "sleep", 1, 1, run_sleep, "sleep MS" },
	{ "quit", 0, 0, run_quit, "quit" },
};

void command_run(struct command *cmd)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(cmd->argv[0], commands[i].name) != 0)
			continue;
		if (cmd->argc - 1 < commands[i].min || cmd->argc - 1 > commands[i].max)
			answer_error(cmd, "usage: %s", commands[i].usage);
		else
			commands[i].run(cmd);
		return;
	}
	answer_error(cmd, "unknown command '%s'", cmd->argv[0]);
}
