/* room: answers */
/*
 * Any bytes as what railmate-probe answers in the pods of a job, each answer ended by a NUL and
 * begun by the digit that is its exit status, if not 0: a table that a terminal may be shown, JSON
 * of it, and no pass of what does not say so itself.
 */
#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "railmatectl/cluster.h"

#define PODS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cut(const char *data, size_t size, struct cluster *c)
{
	static const char *const names[PODS] = { "train-1", "train-0", "train-2", "train-0" };

	c->pods = xcalloc(PODS, sizeof(*c->pods));
	c->calls = arena_array(c->arena, PODS, sizeof(*c->calls));
	for (size_t at = 0, len; at < size && c->n < PODS; c->n++) {
		struct kubectl_call *call = &c->calls[c->n];

		len = strnlen(data + at, size - at);
		c->pods[c->n].name = names[c->n];
		if (len && isdigit((unsigned char)data[at])) {
			call->status = data[at] - '0';
			at++;
			len--;
		}
		strbuf_add(&call->out, data + at, len);
		kubectl_find_why(call);
		at += len + 1;
	}
}

static bool all_good(const struct cluster *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct err err = { 0 };
		const struct item *top = cluster_answer(c, i, c->arena, &err);

		if (!top || c->calls[i].status || item_number(top, "probe", 0) != 1 ||
		    !str_eq(item_string(top, "outcome"), "good"))
			return false;
	}
	return true;
}

/* The answers are whole in it, and a nesting that no reader takes is the pod's. */
static void check_json(const struct cluster *c, const struct strbuf *json)
{
	const struct item *top = NULL, *list;
	struct err err = { 0 };

	if (document_parse(strbuf_str(json), json->len, "JSON", c->arena, &top, &err) < 0) {
		assert(strstr(err.msg, "deep") || strstr(err.msg, "large"));
		return;
	}
	list = item_get(top, "reports");
	assert(list && list->type == ITEM_LIST && list->n_kids == c->n);
	assert(str_eq(item_string(top, "outcome"), "good") == all_good(c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
	_cleanup_cluster_ struct cluster c = CLUSTER_INIT;
	int code;

	cut((const char *)data, size, &c);
	if (!c.n)
		return 0;
	code = cluster_merge_probe(&c, &text);
	assert((code == 0) == all_good(&c));
	assert(code == 0 || code == 1 || (code >= 3 && code <= 5));
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.s[i];

		assert(byte == '\n' || (byte >= ' ' && byte != 0x7f));
	}
	c.json = true;
	assert(cluster_merge_probe(&c, &json) == code);
	check_json(&c, &json);
	return 0;
}
