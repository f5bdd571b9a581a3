#include "control/control.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

static const char *const op_names[CONTROL_OP_MAX] = {
	[CONTROL_STATUS] = "status",   [CONTROL_LEDGER] = "ledger",   [CONTROL_BIND] = "bind",
	[CONTROL_POOLS] = "pools",     [CONTROL_RELEASE] = "release", [CONTROL_WHOSE] = "whose",
	[CONTROL_REFRESH] = "refresh",
};

/* Numbers of errno differ between machines, names do not. Others travel as EIO. */
static const struct {
	const char *name;
	int code;
} codes[] = {
	{ "EIO", EIO },	      { "EACCES", EACCES },	{ "EAGAIN", EAGAIN },
	{ "EBUSY", EBUSY },   { "EINVAL", EINVAL },	{ "ENOENT", ENOENT },
	{ "ENOSPC", ENOSPC }, { "ENOSYS", ENOSYS },	{ "ENODEV", ENODEV },
	{ "EROFS", EROFS },   { "EMSGSIZE", EMSGSIZE }, { "ETIMEDOUT", ETIMEDOUT },
	{ "EPERM", EPERM },
};

static bool needs_vf(enum control_op op)
{
	return op == CONTROL_RELEASE || op == CONTROL_WHOSE || op == CONTROL_REFRESH;
}

void control_write_request(const struct control_request *r, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "op", op_names[r->op]);
	if (r->op == CONTROL_BIND)
		json_kv_string(&j, "slot", r->slot);
	if (r->op == CONTROL_BIND || r->op == CONTROL_WHOSE) {
		json_kv_string(&j, "namespace", r->ns);
		json_kv_string(&j, "pod", r->pod);
		json_kv_string(&j, "uid", r->uid);
	}
	if (needs_vf(r->op))
		json_kv_string(&j, "vf", r->vf);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static const char *string_or_empty(const struct item *object, const char *key)
{
	const char *s = item_string(object, key);

	return s ? s : "";
}

int control_read_request(const char *text, size_t len, struct arena *a, struct control_request *ret,
			 struct err *err)
{
	struct control_request r = { .op = CONTROL_OP_MAX };
	const struct item *top;
	const char *op;
	int rc;

	rc = document_parse(text, len, "request", a, &top, err);
	if (rc < 0)
		return rc;
	op = item_string(top, "op");
	if (!op)
		return err_set(err, EINVAL, "the request names no \"op\"");
	for (int i = 0; i < CONTROL_OP_MAX; i++) {
		if (str_eq(op, op_names[i]))
			r.op = (enum control_op)i;
	}
	if (r.op == CONTROL_OP_MAX)
		return err_set(err, ENOSYS,
			       "railmated " RAILMATE_VERSION " does not know the request \"%s\"",
			       document_shown(op, a));
	r.slot = string_or_empty(top, "slot");
	r.ns = string_or_empty(top, "namespace");
	r.pod = string_or_empty(top, "pod");
	r.uid = string_or_empty(top, "uid");
	r.vf = string_or_empty(top, "vf");
	if (r.op == CONTROL_BIND && !*r.slot)
		return err_set(err, EINVAL, "the request \"%s\" names no \"slot\"", op_names[r.op]);
	if (needs_vf(r.op) && !*r.vf)
		return err_set(err, EINVAL, "the request \"%s\" names no \"vf\"", op_names[r.op]);
	*ret = r;
	return 0;
}

void control_write_reply(const struct control_reply *r, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	if (r->bound) {
		json_kv_array(&j, "bound");
		for (size_t i = 0; i < r->n_bound; i++) {
			const struct control_bound *b = &r->bound[i];

			json_begin_object(&j);
			json_kv_string(&j, "slot", b->slot);
			json_kv_string(&j, "resource", b->resource);
			json_kv_string(&j, "vf", b->vf);
			json_kv_string(&j, "rdma", b->rdma);
			json_kv_string(&j, "pf", b->pf);
			if (b->rail >= 0)
				json_kv_int(&j, "rail", b->rail);
			if (b->plane >= 0)
				json_kv_int(&j, "plane", b->plane);
			if (b->claim)
				json_kv_string(&j, "claim", b->claim);
			json_end_object(&j);
		}
		json_end_array(&j);
	}
	if (r->ledger)
		json_kv_string(&j, "ledger", r->ledger);
	if (r->pools)
		json_kv_string(&j, "pools", r->pools);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

void control_write_error(const struct err *why, struct strbuf *out)
{
	const char *name = codes[0].name;
	struct json j;

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		if (codes[i].code == why->code)
			name = codes[i].name;
	}
	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_object(&j, "error");
	json_kv_string(&j, "code", name);
	json_kv_string(&j, "message", why->msg);
	json_end_object(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static int number_or_unknown(const struct item *object, const char *key)
{
	const struct item *n = item_get(object, key);
	bool known = n && n->type == ITEM_NUMBER && n->whole && n->number >= 0;

	return known && n->number <= INT_MAX ? (int)n->number : -1;
}

static int read_bound(const struct item *list, struct arena *a, struct control_reply *ret,
		      struct err *err)
{
	struct control_bound *bound;

	if (list->type != ITEM_LIST)
		return err_set(err, EBADMSG, "railmated's reply: \"bound\" is not a list");
	bound = arena_array(a, list->n_kids + 1,
			    sizeof(*bound)); /* never NULL: that is "not asked for" */
	for (size_t i = 0; i < list->n_kids; i++) {
		bound[i] = (struct control_bound) { item_string(&list->kids[i], "slot"),
						    item_string(&list->kids[i], "resource"),
						    item_string(&list->kids[i], "vf"),
						    item_string(&list->kids[i], "rdma"),
						    item_string(&list->kids[i], "pf"),
						    number_or_unknown(&list->kids[i], "rail"),
						    number_or_unknown(&list->kids[i], "plane"),
						    item_string(&list->kids[i], "claim") };
		if (!bound[i].slot || !bound[i].resource || !bound[i].vf)
			return err_set(err, EBADMSG,
				       "railmated's reply: bound[%zu] is not complete", i);
	}
	ret->bound = bound;
	ret->n_bound = list->n_kids;
	return 0;
}

int control_read_reply(const char *text, size_t len, struct arena *a, struct control_reply *ret,
		       struct err *err)
{
	struct control_reply reply = { 0 };
	const struct item *top, *error, *bound;
	int r;

	if (document_parse(text, len, "railmated's reply", a, &top, err) < 0) {
		err->code = EBADMSG;
		return -EBADMSG;
	}
	if (top->type != ITEM_OBJECT)
		return err_set(err, EBADMSG, "railmated's reply is not an object");
	error = item_get(top, "error");
	if (error) {
		const char *name = item_string(error, "code");
		const char *message = item_string(error, "message");
		int code = EIO;

		for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
			if (str_eq(name, codes[i].name))
				code = codes[i].code;
		}
		return err_set(err, code, "%s",
			       message && *message ? message : "railmated gives no reason");
	}
	bound = item_get(top, "bound");
	if (bound) {
		r = read_bound(bound, a, &reply, err);
		if (r < 0)
			return r;
	}
	reply.ledger = item_string(top, "ledger");
	reply.pools = item_string(top, "pools");
	*ret = reply;
	return 0;
}
