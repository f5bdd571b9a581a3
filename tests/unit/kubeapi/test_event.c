/* Events, as the API server wants them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "document/document.h"
#include "kubeapi/events-internal.h"

static const struct event simple = {
	.node = "worker-1.example",
	.action = "Discover",
	.reason = "PoolEmpty",
	.note = "rdma/vf has no device",
	.wall_ms = 1767323045067,
};

static void an_event_has_what_the_api_server_asks_for(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)state;
	kubeapi_event_write(&simple, &text);
	assert_string_equal(
		strbuf_str(&text),
		"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"railmate-9e0a53b8d8aa8adf\"},\"eventTime\":\"2026-01-02T03:04:05.067000Z\",\"type\":\"Warning\",\"action\":\"Discover\",\"reason\":\"PoolEmpty\",\"note\":\"rdma/vf has no device\",\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"worker-1.example\",\"uid\":\"worker-1.example\"},\"reportingController\":\"railmated\",\"reportingInstance\":\"railmated-worker-1.example\"}");
}

static void an_event_about_a_pod_is_in_its_namespace(void **state)
{
	struct event e = simple;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	char *path;

	(void)state;
	e.ns = "team-a";
	e.pod = "web-0";
	e.uid = "0c1d";
	e.normal = true;
	kubeapi_event_write(&e, &text);
	assert_non_null(strstr(strbuf_str(&text), "\"type\":\"Normal\""));
	assert_non_null(strstr(
		strbuf_str(&text),
		"\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"team-a\",\"name\":\"web-0\",\"uid\":\"0c1d\"}"));
	path = kubeapi_event_path(&e);
	assert_string_equal(path, "/apis/events.k8s.io/v1/namespaces/team-a/events");
	free(path);
	e.ns = "../kube-system";
	assert_null(kubeapi_event_path(&e));
	e.pod = NULL;
	path = kubeapi_event_path(&e);
	assert_string_equal(path, EVENT_PATH);
	free(path);
}

static char *value_of(const struct event *e, const char *object, const char *key)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	const struct item *top;
	struct err err = { 0 };

	kubeapi_event_write(e, &text);
	assert_int_equal(document_parse(text.s, text.len, "event", arena, &top, &err), 0);
	return strdup(item_string(object ? item_get(top, object) : top, key));
}

/* Of the event with this note on this node. */
static char *value(const char *node, const char *note, int64_t wall_ms, const char *object,
		   const char *key)
{
	struct event e = simple;

	e.node = node;
	e.note = note;
	e.wall_ms = wall_ms;
	return value_of(&e, object, key);
}

static void the_same_said_later_has_the_same_name(void **state)
{
	char *name = value("n", "a", 1, "metadata", "name");
	char *later = value("n", "a", 2, "metadata", "name");
	char *other = value("n", "b", 1, "metadata", "name");
	char *elsewhere = value("m", "a", 1, "metadata", "name");

	(void)state;
	assert_string_equal(name, later);
	assert_string_not_equal(name, other);
	assert_string_not_equal(name, elsewhere);
	free(name);
	free(later);
	free(other);
	free(elsewhere);
}

/* A link that goes down again within the hour is no Event that is there already. */
static void of_a_thing_that_changes_each_occurrence_has_a_name(void **state)
{
	struct event e = simple;
	char *name, *same, *later;

	(void)state;
	e.about = "link 0000:18:00.0";
	name = value_of(&e, "metadata", "name");
	same = value_of(&e, "metadata", "name");
	e.wall_ms++;
	later = value_of(&e, "metadata", "name");
	assert_string_equal(name, same);
	assert_string_not_equal(name, later);
	free(name);
	free(same);
	free(later);
}

static void what_is_too_long_is_cut_between_characters(void **state)
{
	char note[3001], node[254];
	char *cut, *instance;

	(void)state;
	for (size_t i = 0; i < 3000; i += 2)
		memcpy(note + i, "ä", 2);
	note[3000] = '\0';
	memset(node, 'n', 253);
	node[253] = '\0';
	cut = value(node, note, 1, NULL, "note");
	instance = value(node, note, 1, NULL, "reportingInstance");
	assert_int_equal(strlen(cut), 1020 + strlen("…"));
	assert_true(str_utf8_valid(cut, strlen(cut)));
	assert_int_equal(strlen(instance), 128);
	free(cut);
	free(instance);
	note[1024] = '\0';
	cut = value(node, note, 1, NULL, "note");
	assert_string_equal(cut, note);
	free(cut);
}

static void an_interface_cannot_write_to_a_terminal(void **state)
{
	char *note = value("n", "a\033[2Jb\nc", 1, NULL, "note");

	(void)state;
	assert_string_equal(note, "a?[2Jb?c");
	free(note);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_what_the_api_server_asks_for),
		cmocka_unit_test(an_event_about_a_pod_is_in_its_namespace),
		cmocka_unit_test(the_same_said_later_has_the_same_name),
		cmocka_unit_test(of_a_thing_that_changes_each_occurrence_has_a_name),
		cmocka_unit_test(what_is_too_long_is_cut_between_characters),
		cmocka_unit_test(an_interface_cannot_write_to_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
