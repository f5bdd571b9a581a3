#include "daemon/emptypools.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/apiserver.h"
#include "daemon/specs.h"
#include "kubeapi/event.h"
#include "kubeapi/transfer.h"
#include "pool/empty.h"
#include "pool/node.h"

#define REASON	    "PoolEmpty"
#define ANSWER_MS   10000
#define SECONDS_MAX 3600

/* http_status of an answer that another day may be another one; 0: there was none */
#define HTTP_CONFLICT	   409
#define HTTP_TOO_MANY	   429
#define HTTP_SERVER_FAILED 500

struct emptypools {
	uv_timer_t timer; /* until the next look, or for the answer */
	uv_async_t answered;
	const struct specs_options *who;
	const struct node *(*newest)(void *ctx);
	void *ctx;
	uint64_t pause_s;
	size_t next; /* pool: the ones before have been told, or have devices */
	bool complained;

	/* of the one that is being told */
	char *note;
	struct transfer *transfer;
	_Atomic(struct answer *) answer; /* from the transfer's thread */
};

static const struct pool *nth_pool(const struct node *node, size_t i)
{
	if (i < node->n_pools)
		return &node->pools[i];
	i -= node->n_pools;
	return i < node->n_shared ? &node->shared[i] : NULL;
}

/* --- telling --- */

static void on_answer(void *arg, struct answer *answer)
{
	struct emptypools *e = arg;

	atomic_store(&e->answer, answer);
	uv_async_send(&e->answered);
}

static int find_ways(const struct emptypools *e, const char **ret_node, char **ret_url,
		     char **ret_token, char **ret_ca, struct err *err)
{
	_cleanup_free_ char *token = xasprintf("%s/token", e->who->service_account), *server = NULL;
	int r;

	if (access(token, R_OK) < 0)
		return err_sys(err, "open the token %s", token);
	r = apiserver_url(&server, err);
	if (r == 0)
		r = apiserver_node(e->who->node_name, ret_node, err);
	if (r < 0)
		return r;
	*ret_url = xasprintf("%s" EVENT_PATH, server);
	*ret_token = STEAL(token);
	*ret_ca = xasprintf("%s/ca.crt", e->who->service_account);
	return 0;
}

static int begin(struct emptypools *e, struct err *err)
{
	_cleanup_free_ char *url = NULL, *token = NULL, *ca = NULL;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct kubeapi_options opt = { .name = "API server" };
	struct event event = { .action = "Discover", .reason = REASON, .note = e->note };
	int r;

	r = find_ways(e, &event.node, &url, &token, &ca, err);
	if (r < 0)
		return r;
	event.wall_ms = clock_wall_ms();
	event_write(&event, &text);
	opt.url = url;
	opt.token_file = token;
	opt.ca_file = ca;
	opt.post = strbuf_str(&text);
	r = transfer_open(&opt, TRANSFER_PODS, on_answer, e, &e->transfer, err);
	if (r == 0)
		transfer_begin(e->transfer, NULL);
	return r;
}

static void end(struct emptypools *e)
{
	if (e->transfer)
		transfer_close(STEAL(e->transfer));
	answer_free(atomic_exchange(&e->answer, NULL));
	free(STEAL(e->note));
}

/* One line, however often it fails. */
static void complain(struct emptypools *e, const struct err *err)
{
	if (!e->complained)
		log_warn("pool", "no Event on the node says that pools are empty error=%s",
			 err->msg);
	e->complained = true;
}

/* --- when --- */

static void on_timer(uv_timer_t *timer);

static void look_again(struct emptypools *e)
{
	e->pause_s = e->pause_s * 2 < SECONDS_MAX ? e->pause_s * 2 : SECONDS_MAX;
	uv_timer_start(&e->timer, on_timer, e->pause_s * 1000, 0);
}

/* From the first pool that has not been told. */
static void tell(struct emptypools *e)
{
	const struct node *node = e->newest(e->ctx);
	_cleanup_strbuf_ struct strbuf note = STRBUF_INIT;
	const struct pool *pool = NULL;
	struct err err = { 0 };

	if (!node || !pool_is_meant_for(node->inv))
		return;
	while ((pool = nth_pool(node, e->next)) && pool->n_devs)
		e->next++;
	if (!pool)
		return;
	pool_say_empty(node, pool, &note);
	e->note = strbuf_steal(&note);
	if (begin(e, &err) < 0) {
		complain(e, &err);
		end(e);
		return;
	}
	uv_timer_start(&e->timer, on_timer, ANSWER_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct emptypools *e = timer->data;

	if (e->transfer)
		transfer_cancel(e->transfer); /* the answer tells of it */
	else
		tell(e);
}

static bool may_change(long status)
{
	return !status || status == HTTP_TOO_MANY || status >= HTTP_SERVER_FAILED;
}

static void on_answered(uv_async_t *async)
{
	struct emptypools *e = async->data;
	struct answer *answer = atomic_load(&e->answer);
	bool told, again;

	if (!answer)
		return;
	uv_timer_stop(&e->timer);
	told = !answer->err.code || answer->status == HTTP_CONFLICT;
	again = may_change(answer->status);
	if (told)
		log_info("pool",
			 "an Event on the node says that a pool is empty event=" REASON
			 " reason=%s",
			 e->note);
	else
		complain(e, &answer->err);
	end(e);
	e->next += told;
	if (told)
		tell(e);
	else if (again)
		look_again(e);
}

struct emptypools *emptypools_start(struct uv_loop_s *loop, const struct specs_options *who,
				    unsigned seconds, const struct node *(*newest)(void *ctx),
				    void *ctx)
{
	struct emptypools *e = xcalloc(1, sizeof(*e));

	e->who = who;
	e->newest = newest;
	e->ctx = ctx;
	e->pause_s = seconds;
	uv_timer_init(loop, &e->timer);
	uv_async_init(loop, &e->answered, on_answered);
	e->timer.data = e->answered.data = e;
	uv_timer_start(&e->timer, on_timer, e->pause_s * 1000, 0);
	return e;
}

void emptypools_stop(struct emptypools *e)
{
	if (e)
		end(e);
}

void emptypools_free(struct emptypools *e)
{
	free(e);
}
