/*
 * Events of the node and its pods, and the node's condition: which wait, how they are written, and
 * their sending one after the other. notes.c has what there is to tell.
 */
#include "kubeapi/events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/events-internal.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/specs.h"
#include "kubeapi/transfer-internal.h"

/*
 * The node condition RDMALinksHealthy: True while every PF of a pool has its link up and well,
 * Unknown while no pool has a PF.
 * Sent as a strategic merge patch of the node's status, which leaves all other conditions as they
 * are (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1: patchMergeKey
 * "type").
 */
#define CONDITION_TYPE "RDMALinksHealthy"

/* --- which Events wait --- */

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void end_event(struct event *e)
{
	free((char *)e->ns);
	free((char *)e->pod);
	free((char *)e->uid);
	free((char *)e->about);
	free((char *)e->action);
	free((char *)e->reason);
	free((char *)e->note);
}

static struct event copy_event(const struct event *e)
{
	return (struct event) { .ns = copy(e->ns),
				.pod = copy(e->pod),
				.uid = copy(e->uid),
				.about = copy(e->about),
				.normal = e->normal,
				.action = copy(e->action),
				.reason = copy(e->reason),
				.note = copy(e->note),
				.wall_ms = e->wall_ms };
}

static uint64_t hash_of(const struct event *e, const char *first, const char *second)
{
	_cleanup_free_ char *all =
		xasprintf("%s\n%s\n%s\n%s\n%s", e->pod ? e->ns : "", e->pod ? e->pod : "",
			  e->uid ? e->uid : "", first, second);

	return str_hash(all);
}

static uint64_t thing_of(const struct event *e)
{
	return e->about ? hash_of(e, "about", e->about) : 0;
}

/* copied */
static struct events_item *events_item_new(const struct event *e)
{
	struct events_item *item = xcalloc(1, sizeof(*item));

	item->event = copy_event(e);
	item->thing = thing_of(e);
	return item;
}

void events_item_free(struct events_item *item)
{
	end_event(&item->event);
	free(item);
}

void events_queue_init(struct events_queue *q, int64_t now_ms)
{
	*q = (struct events_queue) { .tokens = EVENTS_BURST, .refilled_ms = now_ms };
	STAILQ_INIT(&q->items);
}

/* Of a thing the last Event about it; else that Event itself. -1: none. */
static int find_recent(const struct events_queue *q, uint64_t hash, uint64_t thing)
{
	for (int i = 0; i < EVENTS_RECENT_MAX; i++) {
		if (q->recent[i].at_ms && q->recent[i].thing == thing &&
		    (thing || q->recent[i].hash == hash))
			return i;
	}
	return -1;
}

static bool was_said(const struct events_queue *q, int at, uint64_t hash, int64_t now_ms)
{
	return at >= 0 && q->recent[at].hash == hash &&
	       now_ms - q->recent[at].at_ms < EVENTS_SAME_MS;
}

static struct events_item *find_waiting(struct events_queue *q, uint64_t thing)
{
	struct events_item *item;

	STAILQ_FOREACH (item, &q->items, next) {
		if (thing && item->thing == thing)
			return item;
	}
	return NULL;
}

bool events_queue_put(struct events_queue *q, const struct event *e, int64_t now_ms)
{
	uint64_t hash = hash_of(e, e->reason, e->note), thing = thing_of(e);
	struct events_item *waiting = find_waiting(q, thing);
	int at = find_recent(q, hash, thing);

	if (was_said(q, at, hash, now_ms) || (!waiting && q->n >= EVENTS_QUEUE_MAX))
		return false;
	if (at < 0) {
		at = (int)q->next_recent;
		q->next_recent = (q->next_recent + 1) % EVENTS_RECENT_MAX;
	}
	q->recent[at].hash = hash;
	q->recent[at].thing = thing;
	q->recent[at].at_ms = now_ms;
	if (waiting) {
		end_event(&waiting->event);
		waiting->event = copy_event(e);
		return true;
	}
	waiting = events_item_new(e);
	STAILQ_INSERT_TAIL(&q->items, waiting, next);
	q->n++;
	return true;
}

void events_queue_forget(struct events_queue *q, const struct event *e)
{
	int at = find_recent(q, 0, thing_of(e));

	if (at >= 0)
		q->recent[at].at_ms = 0;
}

static void refill(struct events_queue *q, int64_t now_ms)
{
	int64_t n = (now_ms - q->refilled_ms) / EVENTS_REFILL_MS;

	q->refilled_ms += n * EVENTS_REFILL_MS;
	q->tokens = n >= EVENTS_BURST - q->tokens ? EVENTS_BURST : q->tokens + (unsigned)n;
}

struct events_item *events_queue_take(struct events_queue *q, int64_t now_ms, int64_t *ret_wait_ms)
{
	struct events_item *item = STAILQ_FIRST(&q->items);

	refill(q, now_ms);
	*ret_wait_ms = item && !q->tokens ? q->refilled_ms + EVENTS_REFILL_MS - now_ms : 0;
	if (!item || !q->tokens)
		return NULL;
	STAILQ_REMOVE_HEAD(&q->items, next);
	q->n--;
	q->tokens--;
	return item;
}

void events_queue_drop(struct events_queue *q, bool pods)
{
	struct events_item *item = STAILQ_FIRST(&q->items), *next;

	for (; item; item = next) {
		next = STAILQ_NEXT(item, next);
		if ((item->event.pod != NULL) != pods)
			continue;
		STAILQ_REMOVE(&q->items, item, events_item, next);
		q->n--;
		events_item_free(item);
	}
}

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
	json_kv_object(j, "metadata");
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
	json_kv_object(&j, "regarding");
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
	json_kv_object(&j, "status");
	json_kv_array(&j, "conditions");
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

#define ANSWER_MS	   10000
#define PAUSE_FIRST_MS	   2000 /* of an API server that is away; doubled each time */
#define PAUSE_MOST_MS	   600000
#define HEARTBEAT_MS	   300000 /* of the condition, as node-problem-detector's */
#define HTTP_FORBIDDEN	   403
#define HTTP_CONFLICT	   409
#define HTTP_TOO_MANY	   429
#define HTTP_SERVER_FAILED 500

/* Kinds that are not sent to the API server. */
enum { OFF_NODE = 1 << 0, OFF_PODS = 1 << 1, OFF_CONDITION = 1 << 2 };

struct events {
	const struct specs_options *who;
	uv_timer_t timer; /* for an answer, or until the next try */
	uv_timer_t heartbeat;
	uv_timer_t refill; /* until the next Event may be sent */
	uv_async_t wake;

	pthread_mutex_t lock; /* for all up to the next gap */
	struct events_queue queue;
	unsigned off; /* OFF_*: not wanted, or the right is missing */
	struct {
		char *message; /* NULL: not known yet */
		enum condition_status status;
		bool due;
		int64_t since_ms;
	} condition;

	/* main thread */
	struct events_item *sending;
	struct transfer *transfer;
	_Atomic(struct answer *) answer; /* from the transfer's thread */
	uint64_t pause_ms;
	unsigned complained; /* OFF_* */
};

/* --- any thread --- */

static unsigned kind_of(const struct events_item *item)
{
	return item->condition ? OFF_CONDITION : item->event.pod ? OFF_PODS : OFF_NODE;
}

void events_condition(struct events *e, enum condition_status status, const char *message)
{
	bool changed;

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	changed = !(e->off & OFF_CONDITION) &&
		  (!str_eq(e->condition.message, message) || e->condition.status != status);
	if (changed) {
		if (!e->condition.message || e->condition.status != status)
			e->condition.since_ms = clock_wall_ms();
		free(e->condition.message);
		e->condition.message = xstrdup(message);
		e->condition.status = status;
		e->condition.due = true;
	}
	pthread_mutex_unlock(&e->lock);
	if (changed)
		uv_async_send(&e->wake);
}

static bool is_on(const struct events *e, const struct event *event)
{
	return !(e->off & (event->pod ? OFF_PODS : OFF_NODE)) && (!event->pod || *event->pod);
}

void events_send(struct events *e, const struct event *event)
{
	struct event now = *event;
	bool wanted;

	if (!e)
		return;
	now.wall_ms = clock_wall_ms();
	pthread_mutex_lock(&e->lock);
	wanted = is_on(e, event) && events_queue_put(&e->queue, &now, clock_mono_ms());
	pthread_mutex_unlock(&e->lock);
	if (wanted)
		uv_async_send(&e->wake);
}

void events_forget(struct events *e, const struct event *event)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	events_queue_forget(&e->queue, event);
	pthread_mutex_unlock(&e->lock);
}

/* --- on the main thread --- */

static void on_answer(void *arg, struct answer *answer)
{
	struct events *e = arg;

	atomic_store(&e->answer, answer);
	uv_async_send(&e->wake);
}

static int compose(struct events_item *item, const char *node_name, char **ret_path,
		   struct strbuf *body, struct err *err)
{
	struct event *event = &item->event;
	struct condition condition;
	int r = apiserver_node(node_name, &event->node, err);

	if (r < 0)
		return r;
	if (!item->condition) {
		*ret_path = kubeapi_event_path(event);
		kubeapi_event_write(event, body);
		return *ret_path ? 0
				 : err_set(err, EINVAL, "'%s' is not the name of a namespace",
					   event->ns);
	}
	condition = (struct condition) { event->node, item->status, event->note, item->since_ms,
					 event->wall_ms };
	*ret_path = kubeapi_condition_path(event->node);
	kubeapi_condition_write(&condition, body);
	return *ret_path ? 0 : err_set(err, EINVAL, "'%s' is not the name of a node", event->node);
}

static int begin(struct events *e, struct err *err)
{
	_cleanup_free_ char *server = NULL, *path = NULL, *url = NULL,
			    *token = xasprintf("%s/token", e->who->service_account),
			    *ca = xasprintf("%s/ca.crt", e->who->service_account);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct kubeapi_options opt = { .token_file = token, .ca_file = ca };
	struct transfer_request request = { .method = "POST", .type = "application/json" };
	int r = access(token, R_OK) < 0 ? err_sys(err, "open the token %s", token)
					: apiserver_url(&server, err);

	if (r == 0)
		r = compose(e->sending, e->who->node_name, &path, &text, err);
	if (r < 0)
		return r;
	url = xasprintf("%s%s", server, path);
	request.url = url;
	request.body = strbuf_str(&text);
	if (e->sending->condition) {
		request.method = "PATCH";
		request.type = "application/strategic-merge-patch+json";
	}
	r = kubeapi_transfer_open(&opt, TRANSFER_OBJECTS, NULL, on_answer, e, &e->transfer, err);
	if (r == 0)
		kubeapi_transfer_begin(e->transfer, &request);
	return r;
}

static struct events_item *condition_item(struct events *e)
{
	struct events_item *item = events_item_new(&(struct event) {
		.reason = CONDITION_TYPE,
		.note = e->condition.message,
		.wall_ms = clock_wall_ms(),
	});

	item->condition = true;
	item->status = e->condition.status;
	item->since_ms = e->condition.since_ms;
	e->condition.due = false;
	return item;
}

static void on_refill(uv_timer_t *timer);

/* The next that may be sent. */
static struct events_item *take_item(struct events *e)
{
	struct events_item *item;
	int64_t wait_ms = 0;

	pthread_mutex_lock(&e->lock);
	if (e->condition.due && !(e->off & OFF_CONDITION))
		item = condition_item(e);
	else
		item = events_queue_take(&e->queue, clock_mono_ms(), &wait_ms);
	pthread_mutex_unlock(&e->lock);
	if (wait_ms)
		uv_timer_start(&e->refill, on_refill, (uint64_t)wait_ms, 0);
	return item;
}

static void give_up(struct events *e, unsigned kinds)
{
	pthread_mutex_lock(&e->lock);
	e->off |= kinds;
	if (kinds & OFF_NODE)
		events_queue_drop(&e->queue, false);
	if (kinds & OFF_PODS)
		events_queue_drop(&e->queue, true);
	pthread_mutex_unlock(&e->lock);
}

/* One line of a kind, until one of it was sent again. */
static void complain(struct events *e, const struct err *err)
{
	unsigned kind = kind_of(e->sending);

	if (kind == OFF_CONDITION && !(e->complained & kind))
		log_warn("event", "the node condition RDMALinksHealthy cannot be set error=%s",
			 err->msg);
	else if (!(e->complained & kind))
		log_warn("event", "an Event cannot be sent event=%s error=%s",
			 e->sending->event.reason, err->msg);
	e->complained |= kind;
}

static void on_timer(uv_timer_t *timer);

static void send_next(struct events *e)
{
	struct err err = { 0 };

	while (!e->transfer && !uv_is_active((uv_handle_t *)&e->timer)) {
		if (!e->sending)
			e->sending = take_item(e);
		if (!e->sending)
			return;
		if (begin(e, &err) == 0) {
			uv_timer_start(&e->timer, on_timer, ANSWER_MS, 0);
			return;
		}
		complain(e, &err);
		give_up(e, OFF_NODE | OFF_PODS | OFF_CONDITION);
		events_item_free(STEAL(e->sending));
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct events *e = timer->data;

	if (e->transfer)
		kubeapi_transfer_cancel(e->transfer); /* its callback follows */
	else
		send_next(e);
}

static void on_refill(uv_timer_t *timer)
{
	send_next(timer->data);
}

static void judge(struct events *e, const struct answer *answer)
{
	if (!answer->err.code || answer->status == HTTP_CONFLICT) {
		e->pause_ms = PAUSE_FIRST_MS;
		e->complained &= ~kind_of(e->sending);
		events_item_free(STEAL(e->sending));
		return;
	}
	complain(e, &answer->err);
	/* Another time it may be another answer. */
	if (!answer->status || answer->status == HTTP_TOO_MANY ||
	    answer->status >= HTTP_SERVER_FAILED) {
		uv_timer_start(&e->timer, on_timer, e->pause_ms, 0);
		e->pause_ms = e->pause_ms * 2 < PAUSE_MOST_MS ? e->pause_ms * 2 : PAUSE_MOST_MS;
		return;
	}
	if (answer->status == HTTP_FORBIDDEN)
		give_up(e, kind_of(e->sending));
	events_item_free(STEAL(e->sending));
}

static void on_wake(uv_async_t *async)
{
	struct events *e = async->data;
	struct answer *answer = atomic_exchange(&e->answer, NULL);

	if (answer) {
		uv_timer_stop(&e->timer);
		kubeapi_transfer_close(STEAL(e->transfer));
		judge(e, answer);
		kubeapi_answer_free(answer);
	}
	send_next(e);
}

static void on_heartbeat(uv_timer_t *timer)
{
	struct events *e = timer->data;

	pthread_mutex_lock(&e->lock);
	e->condition.due = e->condition.message != NULL;
	pthread_mutex_unlock(&e->lock);
	send_next(e);
}

struct events *events_start(struct uv_loop_s *loop, const struct specs_options *who,
			    enum events_about about, bool condition)
{
	struct events *e;

	if (about == EVENTS_OFF && !condition)
		return NULL;
	e = xcalloc(1, sizeof(*e));
	e->who = who;
	e->off = (about == EVENTS_OFF ? OFF_NODE : 0) | (about == EVENTS_PODS ? 0 : OFF_PODS) |
		 (condition ? 0 : OFF_CONDITION);
	e->pause_ms = PAUSE_FIRST_MS;
	pthread_mutex_init(&e->lock, NULL);
	events_queue_init(&e->queue, clock_mono_ms());
	uv_timer_init(loop, &e->timer);
	uv_timer_init(loop, &e->heartbeat);
	uv_timer_init(loop, &e->refill);
	uv_async_init(loop, &e->wake, on_wake);
	e->timer.data = e->wake.data = e->heartbeat.data = e->refill.data = e;
	if (condition)
		uv_timer_start(&e->heartbeat, on_heartbeat, HEARTBEAT_MS, HEARTBEAT_MS);
	return e;
}

void events_stop(struct events *e)
{
	if (e && e->transfer)
		kubeapi_transfer_close(STEAL(e->transfer));
}

void events_free(struct events *e)
{
	if (!e)
		return;
	events_queue_drop(&e->queue, false);
	events_queue_drop(&e->queue, true);
	if (e->sending)
		events_item_free(e->sending);
	kubeapi_answer_free(e->answer);
	free(e->condition.message);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
