#include "pools.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "document/document.h"
#include "holds/holds.h"

#define ASK_TIMEOUT_MS 5000
#define PODS_NAMED     10

int pools_ask(const char *socket, struct arena *a, const struct item **ret, const char **ret_text,
	      struct err *err)
{
	const struct control_request ask = { .op = CONTROL_POOLS };
	struct control_reply reply;
	int r = control_ask(socket, &ask, ASK_TIMEOUT_MS, a, &reply, err);

	if (r < 0)
		return r;
	if (!reply.pools)
		return err_set(err, EBADMSG, "railmated's reply holds no pools");
	*ret_text = reply.pools;
	return document_parse(reply.pools, strlen(reply.pools), "railmated's pools", a, ret, err);
}

void pools_put_time(int64_t ms, struct strbuf *out)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[40] = "at an unknown time";
	struct tm tm;

	if (ms > 0 && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	strbuf_puts(out, text);
}

/* "in_use" is "in use" to people. */
static const char *shown(const char *state)
{
	return str_eq(state, holds_state_names[HOLDS_IS_IN_USE]) ? "in use" : state;
}

static const char *text_of(const struct item *object, const char *key)
{
	const char *s = item_string(object, key);

	return s ? s : "";
}

const char *pools_node(const struct item *answer)
{
	return text_of(answer, "node");
}

const struct item *pools_list(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *list = item_get(object, key);

	return list && list->type == ITEM_LIST ? list : &none;
}

static bool is_in_state(const struct item *vf, const char *state)
{
	return str_eq(item_string(vf, "state"), state);
}

/* The VF's holder, and the event that would free it. */
static void put_holder(const struct item *vf, struct strbuf *out)
{
	const char *pod = text_of(vf, "pod"), *container = text_of(vf, "container"),
		   *uid = text_of(vf, "uid");

	if (*container)
		strbuf_printf(out, "container %s of ", container);
	if (*pod)
		strbuf_printf(out, "pod %s/%s", text_of(vf, "namespace"), pod);
	else
		strbuf_puts(out, "a pod that is not known yet");
	if (*uid)
		strbuf_printf(out, " (UID %s)", uid);
	strbuf_puts(out, ", since ");
	pools_put_time(item_number(vf, "since_ms", 0), out);
	if (is_in_state(vf, "held")) {
		strbuf_puts(out, "; free when this pod ends");
	} else if (is_in_state(vf, "leaving") || is_in_state(vf, "retired")) {
		strbuf_puts(out, "; it leaves the pool when this pod ends");
	} else if (is_in_state(vf, "allocated")) {
		strbuf_puts(out, "; the container has not started yet");
	} else if (is_in_state(vf, "draining")) {
		const struct item *item = item_get(vf, "replaced");
		bool replaced = item && item->boolean;

		strbuf_printf(out, "; %s, free when nothing uses the VF any more",
			      replaced ? "the container has another VF by now" : "the pod is gone");
		if (*uid && !replaced)
			strbuf_printf(out, " (processes: cgroup pod%s)", uid);
		strbuf_printf(out, ", or by: railmatectl release %s", text_of(vf, "vf"));
	}
}

static void put_vf(const struct item *vf, struct strbuf *out)
{
	const char *why = item_string(vf, "why");

	strbuf_printf(out, "  %-9s %s  ", shown(text_of(vf, "state")), text_of(vf, "vf"));
	if (item_get(vf, "since_ms")) {
		put_holder(vf, out);
	} else if (item_string(vf, "pf")) {
		strbuf_printf(out, "of PF %s", text_of(vf, "pf"));
	}
	if (why && *why)
		strbuf_printf(out, ": %s", why);
	strbuf_putc(out, '\n');
}

void pools_put_pods(const struct item *link, struct strbuf *out)
{
	const struct item *pods = item_get(link, "pods");
	size_t n = pods && pods->type == ITEM_LIST ? pods->n_kids : 0;

	strbuf_puts(out, n ? "pods that hold its VFs: " : "no known pod holds its VFs");
	for (size_t i = 0; i < n && i < PODS_NAMED; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "", pods->kids[i].string);
	if (n > PODS_NAMED)
		strbuf_printf(out, " and %zu more", n - PODS_NAMED);
}

/* The degraded links of the pool's PFs, healthy or not. */
static void put_degraded(const struct item *pool, struct strbuf *out)
{
	const struct item *list = item_get(pool, "degraded");

	for (size_t i = 0; list && list->type == ITEM_LIST && i < list->n_kids; i++) {
		const struct item *l = &list->kids[i];

		strbuf_printf(out, "  %-9s the link of PF %s %s; since ", "degraded",
			      text_of(l, "pf"), text_of(l, "why"));
		pools_put_time(item_number(l, "since_ms", 0), out);
		strbuf_puts(out, "; ");
		pools_put_pods(l, out);
		strbuf_putc(out, '\n');
	}
}

static void put_share_count(const struct item *pool, struct strbuf *out)
{
	const struct item *containers = item_get(pool, "containers");
	long long n = 0;

	if (!item_get(pool, "shares"))
		return;
	for (size_t i = 0; i < pools_list(pool, "containers")->n_kids; i++)
		n += item_number(&containers->kids[i], "shares", 0);
	if (containers && containers->type == ITEM_LIST)
		strbuf_printf(out, "; %lld of %lld shares are given", n,
			      (long long)item_number(pool, "shares", 0));
	else
		strbuf_printf(out, "; %lld shares, who has them is not known",
			      (long long)item_number(pool, "shares", 0));
}

bool pools_put_shares(const struct item *pool, const char *ns, const char *pod, struct strbuf *out)
{
	const struct item *list = pools_list(pool, "containers");
	bool found = false;

	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *c = &list->kids[i];

		if (pod &&
		    (!str_eq(text_of(c, "namespace"), ns) || !str_eq(text_of(c, "pod"), pod)))
			continue;
		strbuf_printf(out, "  %-9s %lld of %s: container %s of pod %s/%s\n", "shares",
			      (long long)item_number(c, "shares", 0), text_of(pool, "resource"),
			      text_of(c, "container"), text_of(c, "namespace"), text_of(c, "pod"));
		found = true;
	}
	return found;
}

void pools_json_shares(const struct item *pool, const char *ns, const char *pod, struct json *j)
{
	const struct item *list = pools_list(pool, "containers");

	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *c = &list->kids[i];

		if (!str_eq(text_of(c, "namespace"), ns) || !str_eq(text_of(c, "pod"), pod))
			continue;
		json_begin_object(j);
		json_kv_string(j, "resource", text_of(pool, "resource"));
		json_kv_string(j, "container", text_of(c, "container"));
		json_kv_int(j, "shares", item_number(c, "shares", 0));
		json_end_object(j);
	}
}

void pools_put_heading(const struct item *pool, struct strbuf *out)
{
	const struct item *vfs = item_get(pool, "vfs"), *counts = item_get(pool, "counts");
	bool first = true;
	size_t n_whole = 0;

	strbuf_printf(out, "%s (binding %s): %zu ", text_of(pool, "resource"),
		      text_of(pool, "binding"), vfs ? vfs->n_kids : 0);
	for (size_t i = 0; vfs && i < vfs->n_kids; i++)
		n_whole += str_eq(text_of(&vfs->kids[i], "vf"), text_of(&vfs->kids[i], "pf"));
	if (item_get(pool, "shares"))
		strbuf_puts(out, "HCAs");
	else if (n_whole)
		strbuf_printf(out, "devices, %zu of them whole PFs", n_whole);
	else
		strbuf_puts(out, "VFs");
	for (int s = HOLDS_STATES; counts && s-- > 0;) {
		long long n = item_number(counts, holds_state_names[s], 0);

		if (!n)
			continue;
		strbuf_printf(out, "%s %lld %s", first ? ":" : ",", n, shown(holds_state_names[s]));
		first = false;
	}
	put_share_count(pool, out);
	strbuf_putc(out, '\n');
}

static void put_pool(const struct item *pool, struct strbuf *out)
{
	const struct item *vfs = item_get(pool, "vfs");

	if (!vfs || vfs->type != ITEM_LIST)
		return;
	pools_put_heading(pool, out);
	if (item_string(pool, "binding_why"))
		strbuf_printf(out, "  binding auto: %s\n", item_string(pool, "binding_why"));
	put_degraded(pool, out);
	pools_put_shares(pool, NULL, NULL, out);
	/* Free VFs are counted by PF: there may be hundreds. */
	for (size_t i = 0; !item_get(pool, "shares") && i < vfs->n_kids; i++) {
		const char *pf = text_of(&vfs->kids[i], "pf");
		size_t n = 0, before = 0;

		if (!is_in_state(&vfs->kids[i], "free"))
			continue;
		for (size_t k = 0; k < vfs->n_kids; k++) {
			bool same = is_in_state(&vfs->kids[k], "free") &&
				    str_eq(text_of(&vfs->kids[k], "pf"), pf);

			n += same;
			before += same && k < i;
		}
		if (!before)
			strbuf_printf(out, "  %-9s %zu of PF %s\n", "free", n, pf);
	}
	for (size_t i = 0; i < vfs->n_kids; i++) {
		if (!is_in_state(&vfs->kids[i], "free"))
			put_vf(&vfs->kids[i], out);
	}
}

bool pools_text(const struct item *answer, const char *resource, struct strbuf *out)
{
	static const char *const keys[] = { "pools", "shared" };
	const struct item *list;
	bool found = false;

	strbuf_printf(out, "node %s\n", pools_node(answer));
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		list = pools_list(answer, keys[k]);
		for (size_t i = 0; i < list->n_kids; i++) {
			if (resource && !str_eq(text_of(&list->kids[i], "resource"), resource))
				continue;
			put_pool(&list->kids[i], out);
			found = true;
		}
	}
	list = pools_list(answer, "unknown_slots");
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *u = &list->kids[i];

		strbuf_printf(
			out,
			"slot %s is held by container %s of pod %s/%s and its VF is not known: until that pod ends, no VF of its pool is given to a new container\n",
			text_of(u, "slot"), text_of(u, "container"), text_of(u, "namespace"),
			text_of(u, "pod"));
	}
	return found || !resource;
}
