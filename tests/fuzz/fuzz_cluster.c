/* room: answers */
/*
 * Any bytes as what nodes answer to `railmatectl cluster status` and `cluster doctor`, each answer
 * ended by a NUL, and as what kubectl says when it fails: a row for each, of one line, with nothing
 * that a terminal obeys; JSON of it; and a recorded answer says the same once more.
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
#include "railmatectl/cluster_doctor.h"
#include "railmatectl/cluster_status.h"
#include "railmatectl/kubectl.h"

#define NODES	 8
#define FINDINGS 9 /* lines about cables, at most */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct answers {
	const char *text[NODES];
	size_t len[NODES], n;
};

static struct answers cut(const char *data, size_t size)
{
	struct answers a = { 0 };

	for (size_t at = 0; at < size && a.n < NODES; at += a.len[a.n++] + 1) {
		a.text[a.n] = data + at;
		a.len[a.n] = strnlen(data + at, size - at);
	}
	return a;
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

static size_t nodes_in(const struct strbuf *json)
{
	_cleanup_arena_ struct arena *a = arena_new(16384);
	const struct item *top = NULL, *nodes;
	struct err err = { 0 };

	assert(document_parse(strbuf_str(json), json->len, "JSON", a, &top, &err) == 0);
	nodes = item_get(top, "nodes");
	assert(nodes && nodes->type == ITEM_LIST);
	return nodes->n_kids;
}

static void name_of(size_t i, char *name)
{
	memcpy(name, "node-0", 7);
	name[5] = (char)('0' + i);
}

static void show(struct fleet *f, struct strbuf *text, struct strbuf *json)
{
	fleet_judge(f);
	assert(fleet_level(f) < FLEET_LEVELS);
	fleet_text(f, text);
	fleet_json(f, json);
}

static void forget(struct fleet *f)
{
	free(f->rows);
	free(f->fabric.v);
}

static void check_status(const struct answers *answers)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, json = STRBUF_INIT, again = STRBUF_INIT;
	_cleanup_strbuf_ struct strbuf json_again = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct fleet f = { .arena = a }, recorded = { .arena = a };

	for (size_t i = 0; i < answers->n; i++) {
		char name[8];

		name_of(i, name);
		fleet_add(&f, name, answers->text[i], answers->len[i]);
	}
	assert(f.n == answers->n);
	show(&f, &text, &json);
	assert(lines_of(&text) <= 1 + f.n + FINDINGS + 1 && nodes_in(&json) == f.n);
	for (size_t i = 0; i < f.n; i++) {
		_cleanup_strbuf_ struct strbuf row = STRBUF_INIT;

		fleet_row_json(&f.rows[i], &row);
		fleet_add(&recorded, "other", strbuf_str(&row), row.len);
	}
	show(&recorded, &again, &json_again);
	assert(!strcmp(strbuf_str(&text), strbuf_str(&again)));
	assert(!strcmp(strbuf_str(&json), strbuf_str(&json_again)));
	forget(&f);
	forget(&recorded);
}

static void check_doctor(const struct answers *answers)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct reports w = { .arena = a };

	for (size_t i = 0; i < answers->n; i++) {
		char name[8];

		name_of(i, name);
		reports_add(&w, name, answers->text[i], answers->len[i], NULL);
	}
	assert(w.n_nodes + w.n_silent == answers->n);
	reports_sort(&w);
	assert(reports_verdict(&w) < DIAGNOSIS_VERDICT_MAX);
	reports_text(&w, NULL, &text);
	reports_json(&w, &json);
	lines_of(&text);
	assert(nodes_in(&json) == w.n_nodes);
	reports_done(&w);
}

static void check_why(const char *data, size_t size)
{
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	struct kubectl_call call = { .status = 1 };

	strbuf_add(&call.err, data, size);
	kubectl_put_why(&call, &why);
	assert(why.len && !strchr(strbuf_str(&why), '\n'));
	kubectl_has_run(&call);
	kubectl_call_done(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answers answers = cut((const char *)data, size);

	if (!answers.n)
		return 0;
	check_status(&answers);
	check_doctor(&answers);
	check_why((const char *)data, size);
	return 0;
}
