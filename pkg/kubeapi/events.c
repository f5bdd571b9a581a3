#include "kubeapi/events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeapi/queue-internal.h"
#include "kubeapi/apiserver.h"
#include "kubeapi/specs.h"
#include "kubeapi/transfer.h"

#define ANSWER_MS      10000
#define PAUSE_FIRST_MS 2000 /* of an API server that is away; doubled each time */
#define PAUSE_MOST_MS  600000
#define HEARTBEAT_MS   300000 /* of the condition, as node-problem-detector's */

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
	struct kubeapi_options opt = { .name = "API server",
				       .token_file = token,
				       .ca_file = ca,
				       .patch = e->sending->condition };
	int r = access(token, R_OK) < 0 ? err_sys(err, "open the token %s", token)
					: apiserver_url(&server, err);

	if (r == 0)
		r = compose(e->sending, e->who->node_name, &path, &text, err);
	if (r < 0)
		return r;
	url = xasprintf("%s%s", server, path);
	opt.url = url;
	opt.post = strbuf_str(&text);
	r = kubeapi_transfer_open(&opt, TRANSFER_PODS, NULL, on_answer, e, &e->transfer, err);
	if (r == 0)
		kubeapi_transfer_begin(e->transfer, NULL);
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
