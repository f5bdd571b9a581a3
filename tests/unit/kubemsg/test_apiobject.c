/* The metadata of objects: what is read, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/apiobject.h"
#include "kubemsg/messages-internal.h"
#include "objectmeta.pb-c.h"

static struct arena *a;
static struct err err;

static int setup(void **state)
{
	(void)state;
	a = arena_new(0);
	err = (struct err) { 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

/* A field with a length, of 127 bytes or many. */
static struct bytes field(unsigned number, struct bytes body)
{
	uint8_t *out = arena_alloc(a, body.len + 6);
	size_t n = 0, left = body.len;

	out[n++] = (uint8_t)(number << 3 | 2);
	for (; left > 0x7f; left >>= 7)
		out[n++] = (uint8_t)(left | 0x80);
	out[n++] = (uint8_t)left;
	memcpy(out + n, body.data, body.len);
	return (struct bytes) { out, n + body.len };
}

static struct bytes joined(struct bytes x, struct bytes y)
{
	uint8_t *out = arena_alloc(a, x.len + y.len + 1);

	memcpy(out, x.data, x.len);
	memcpy(out + x.len, y.data, y.len);
	return (struct bytes) { out, x.len + y.len };
}

static struct bytes text(const char *s)
{
	return (struct bytes) { (const uint8_t *)s, strlen(s) };
}

static struct bytes enveloped(struct bytes object)
{
	return joined((struct bytes) { (const uint8_t *)"k8s", 4 },
		      joined(field(1, text("")), field(2, object)));
}

static struct bytes object(const char *name, const char *version, const char *mark)
{
	Objectmeta__Object o = OBJECTMETA__OBJECT__INIT;
	Objectmeta__Meta m = OBJECTMETA__META__INIT;
	Objectmeta__Entry others = OBJECTMETA__ENTRY__INIT, ours = OBJECTMETA__ENTRY__INIT;
	Objectmeta__Entry *entries[] = { &others, &ours };

	others.key = (char *)"others";
	others.value = (char *)"x";
	ours.key = (char *)"ours";
	ours.value = (char *)mark;
	m.name = (char *)name;
	m.uid = (char *)"u-1";
	m.resource_version = (char *)version;
	m.generation = 3;
	m.annotations = entries;
	m.n_annotations = mark ? 2 : 1;
	o.metadata = &m;
	return kubemsg_pack(&o, a);
}

static void an_object_is_read(void **state)
{
	struct api_object o;

	(void)state;
	assert_int_equal(kubemsg_object(enveloped(object("n-1", "17", "m")), "ours", a, &o, &err),
			 0);
	assert_string_equal(o.name, "n-1");
	assert_string_equal(o.uid, "u-1");
	assert_string_equal(o.version, "17");
	assert_string_equal(o.mark, "m");
	assert_int_equal(o.generation, 3);
	assert_int_equal(kubemsg_object(enveloped(object("n-1", "17", "m")), NULL, a, &o, &err), 0);
	assert_null(o.mark);
}

static void a_list_is_read(void **state)
{
	struct api_objects list;
	struct bytes items =
		joined(field(2, object("n-1", "17", NULL)), field(2, object("n-2", "18", "m")));

	(void)state;
	assert_int_equal(kubemsg_objects(enveloped(joined(field(1, text("")), items)), "ours", a,
					 &list, &err),
			 0);
	assert_int_equal(list.n, 2);
	assert_null(list.v[0].mark);
	assert_string_equal(list.v[1].name, "n-2");
	assert_string_equal(list.v[1].mark, "m");
	assert_int_equal(kubemsg_objects(enveloped(field(1, text(""))), "ours", a, &list, &err), 0);
	assert_int_equal(list.n, 0);
}

static void what_is_no_object_is_refused(void **state)
{
	static const char json[] = "{\"metadata\":{\"name\":\"n\"}}";
	struct bytes whole = enveloped(object("n-1", "17", "m"));
	struct api_objects list;
	struct api_object o;

	(void)state;
	assert_int_equal(kubemsg_object(text(json), NULL, a, &o, &err), -EBADMSG);
	assert_int_equal(kubemsg_objects(text(json), NULL, a, &list, &err), -EBADMSG);
	assert_int_equal(kubemsg_object(text(""), NULL, a, &o, &err), -EBADMSG);
	assert_int_equal(kubemsg_object(enveloped(object("n-1", "", "m")), NULL, a, &o, &err),
			 -EBADMSG);
	assert_int_equal(
		kubemsg_objects(enveloped(field(2, object("", "1", "m"))), NULL, a, &list, &err),
		-EBADMSG);
	for (size_t len = 0; len < whole.len; len++)
		assert_true(kubemsg_object((struct bytes) { whole.data, len }, NULL, a, &o, &err) <
			    0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_object_is_read),
		TEST(a_list_is_read),
		TEST(what_is_no_object_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
