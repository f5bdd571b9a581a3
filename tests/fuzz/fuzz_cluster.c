/* room: answers */
/*
 * Any bytes as what nodes answer to `railmatectl cluster status` and `cluster doctor`, each answer
 * ended by a NUL, and as what kubectl says when it fails: a row for each, of one line, with nothing
 * that a terminal obeys; and JSON of it.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "railmatectl/cluster.h"

#define NODES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The answers of a cluster. */
static void cut(const char *data, size_t size, struct cluster *c)
{
	static const char *const names[NODES] = { "node-0", "node-1", "node-2", "node-3",
						  "node-4", "node-5", "node-6", "node-7" };

	c->pods = xcalloc(NODES, sizeof(*c->pods));
	c->calls = arena_array(c->arena, NODES, sizeof(*c->calls));
	for (size_t at = 0; at < size && c->n < NODES; c->n++) {
		size_t len = strnlen(data + at, size - at);

		c->pods[c->n].node = names[c->n];
		strbuf_add(&c->calls[c->n].out, data + at, len);
		at += len + 1;
	}
}

/* Before print_out() makes it so: that would hide a line feed of a node. */
static size_t lines_of(const struct strbuf *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->s[i];

		assert(c == '\n' || (c >= ' ' && c != 0x7f));
		n += c == '\n';
	}
	assert(str_utf8_valid(strbuf_str(text), text->len));
	return n;
}

static const struct item *list_in(const struct strbuf *json, const char *key, struct arena *a)
{
	const struct item *top = NULL, *list;
	struct err err = { 0 };

	assert(document_parse(strbuf_str(json), json->len, "JSON", a, &top, &err) == 0);
	list = item_get(top, key);
	assert(list && list->type == ITEM_LIST);
	return list;
}

static void check_status(struct cluster *c)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
	int code = cluster_merge_status(c, &text);
	size_t lines, strays;

	assert(code == 0 || code == 5 || code == 6);
	c->json = true;
	assert(cluster_merge_status(c, &json) == code);
	assert(list_in(&json, "nodes", c->arena)->n_kids == c->n);
	strays = list_in(&json, "cables", c->arena)->n_kids;
	lines = lines_of(&text);
	assert(lines == 1 + c->n + (strays ? 2 + strays : 0) + 1);
}

static void check_doctor(struct cluster *c)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
	int code;

	c->json = true;
	code = cluster_merge_doctor(c, &json);
	assert(code == 0 || code == 5 || code == 6 || code == 7);
	list_in(&json, "checks", c->arena);
	c->json = false;
	assert(cluster_merge_doctor(c, &text) == code);
	lines_of(&text);
}

static void check_why(const char *data, size_t size)
{
	struct kubectl_call call = { .status = 1 };

	strbuf_add(&call.err, data, size);
	kubectl_find_why(&call);
	assert(*call.why && !strchr(call.why, '\n'));
	kubectl_has_run(&call);
	kubectl_call_done(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_cluster_ struct cluster c = CLUSTER_INIT;

	cut((const char *)data, size, &c);
	if (!c.n)
		return 0;
	check_status(&c);
	check_doctor(&c);
	check_why((const char *)data, size);
	return 0;
}
