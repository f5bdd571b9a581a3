#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "corepod.pb-c.h"
#include "kubemsg/apilist.h"
#include "kubemsg/messages-internal.h"
#include "resourceclaim.pb-c.h"

struct fixture {
	struct arena *arena;
	struct spec_pods pods;
	struct api_claim claim;
	struct strbuf list; /* inside of the envelope */
	struct err err;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->arena = arena_new(1024);
	f->pods.arena = f->claim.arena = f->arena;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kubemsg_podspec_done(&f->pods);
	arena_free(f->arena);
	strbuf_done(&f->list);
	free(f);
	return 0;
}

static void put_varint(struct strbuf *out, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		strbuf_putc(out, (char)((v & 0x7f) | 0x80));
	strbuf_putc(out, (char)v);
}

static void put_field(struct strbuf *out, unsigned number, const void *data, size_t len)
{
	put_varint(out, number << 3 | 2);
	put_varint(out, len);
	strbuf_add(out, data, len);
}

static void add(struct fixture *f, const void *message)
{
	struct bytes b = kubemsg_pack(message, f->arena);

	put_field(&f->list, 2, b.data, b.len);
}

/* The list of f, in steps of so many bytes. */
static int read_list(struct fixture *f, api_list_fn object, void *arg, size_t step, char **ret_more)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct api_list l;
	int r = 0;

	strbuf_add(&text, "k8s", 4);
	put_field(&text, 1, "\x0a\x02v1", 4);
	put_field(&text, 2, strbuf_str(&f->list), f->list.len);
	put_field(&text, 3, "", 0);
	kubemsg_list_begin(&l, object, arg);
	for (size_t at = 0; at < text.len && r == 0; at += step)
		r = kubemsg_list_push(&l, text.s + at, step < text.len - at ? step : text.len - at,
				      &f->err);
	if (r == 0)
		r = kubemsg_list_end(&l, &f->err);
	if (ret_more)
		*ret_more = STEAL(l.more);
	kubemsg_list_done(&l);
	return r;
}

static void add_pod(struct fixture *f, const char *name, const char *phase)
{
	Corepod__Pod m = COREPOD__POD__INIT;
	Corepod__ObjectMeta meta = COREPOD__OBJECT_META__INIT;
	Corepod__PodSpec spec = COREPOD__POD_SPEC__INIT;
	Corepod__PodStatus status = COREPOD__POD_STATUS__INIT;

	meta.name = (char *)name;
	meta.namespace_ = (char *)"n";
	meta.uid = (char *)"u";
	status.phase = (char *)phase;
	m.metadata = &meta;
	m.spec = &spec;
	m.status = &status;
	add(f, &m);
}

static void pods_are_the_same_however_their_bytes_arrive(void **state)
{
	struct fixture *f = *state;

	add_pod(f, "a", "Pending");
	add_pod(f, "ended", "Succeeded");
	add_pod(f, "failed", "Failed");
	add_pod(f, "b", "Running");
	for (size_t step = 1; step < 200; step++) {
		f->pods.n = 0;
		assert_int_equal(read_list(f, kubemsg_list_pod, &f->pods, step, NULL), 0);
		assert_int_equal(f->pods.n, 2);
		assert_string_equal(f->pods.v[0].name, "a");
		assert_string_equal(f->pods.v[1].name, "b");
	}
}

static void a_list_names_the_rest_of_it(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *more = NULL;

	put_field(&f->list, 1,
		  "\x12\x01"
		  "7\x1a\x03"
		  "abc",
		  8);
	assert_int_equal(read_list(f, kubemsg_list_pod, &f->pods, 3, &more), 0);
	assert_string_equal(more, "abc");
}

static void an_object_of_unreasonable_size_is_refused_before_it_came(void **state)
{
	struct fixture *f = *state;

	put_varint(&f->list, 2 << 3 | 2);
	put_varint(&f->list, API_LIST_OBJECT_MAX + 1);
	assert_int_equal(read_list(f, kubemsg_list_pod, &f->pods, 7, NULL), -EFBIG);
	assert_non_null(strstr(f->err.msg, "items[0] takes more than 8 MiB"));
}

/* Small ones: their places count. */
static void pods_without_end_are_bounded_with_the_array_that_has_them(void **state)
{
	struct fixture *f = *state;
	int r = 0;

	for (int i = 0; i < 1000; i++)
		add_pod(f, "p", "Running");
	while (r == 0 && f->pods.n < SPEC_LIST_BYTES_MAX / sizeof(*f->pods.v))
		r = read_list(f, kubemsg_list_pod, &f->pods, 16384, NULL);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(f->err.msg, "take more than"));
	assert_true(f->pods.n > 5000);
}

/* A claim, and the parts of it that a test fills. */
struct parts {
	Resourceclaim__ResourceClaim m;
	Resourceclaim__ObjectMeta meta;
	Resourceclaim__Status status;
	Resourceclaim__Allocation allocation;
	Resourceclaim__Devices devices;
};

static struct parts *parts_of_claim(struct fixture *f, const char *device, size_t n)
{
	struct parts *p = arena_alloc(f->arena, sizeof(*p));

	resourceclaim__resource_claim__init(&p->m);
	resourceclaim__object_meta__init(&p->meta);
	resourceclaim__status__init(&p->status);
	resourceclaim__allocation__init(&p->allocation);
	resourceclaim__devices__init(&p->devices);
	p->devices.results = kubemsg_array(&resourceclaim__result__descriptor, n, f->arena);
	p->devices.n_results = n;
	for (size_t i = 0; i < n; i++) {
		p->devices.results[i]->request = (char *)"a/b";
		p->devices.results[i]->driver = (char *)"gpu.nvidia.com";
		p->devices.results[i]->pool = (char *)"n1";
		p->devices.results[i]->device = (char *)device;
	}
	p->m.metadata = &p->meta;
	p->m.status = &p->status;
	p->status.allocation = &p->allocation;
	p->allocation.devices = &p->devices;
	return p;
}

static void put_claim(struct fixture *f, const char *device, size_t n)
{
	add(f, &parts_of_claim(f, device, n)->m);
}

static void put_capacity(struct fixture *f, Resourceclaim__Result *r, const char *key,
			 const char *quantity)
{
	Resourceclaim__Result__ConsumedCapacityEntry **v = kubemsg_array(
		&resourceclaim__result__consumed_capacity_entry__descriptor, 1, f->arena);

	v[0]->key = (char *)key;
	v[0]->value = kubemsg_new(&resourceclaim__quantity__descriptor, f->arena);
	v[0]->value->string = (char *)quantity;
	r->consumed_capacity = v;
	r->n_consumed_capacity = 1;
}

static void the_devices_of_a_claim_are_read(void **state)
{
	struct fixture *f = *state;

	put_claim(f, "gpu-0", 2);
	assert_int_equal(read_list(f, kubemsg_list_claim, &f->claim, 5, NULL), 0);
	assert_true(f->claim.found);
	assert_int_equal(f->claim.claim.n, 2);
	assert_string_equal(f->claim.claim.v[1].request, "a/b");
	assert_string_equal(f->claim.claim.v[1].driver, "gpu.nvidia.com");
	assert_string_equal(f->claim.claim.v[1].pool, "n1");
	assert_string_equal(f->claim.claim.v[1].device, "gpu-0");
	assert_null(f->claim.claim.v[1].share);
	assert_int_equal(f->claim.claim.v[1].vfs, 0);
	assert_false(f->claim.claim.deleted);
}

static void shares_of_a_device_have_their_capacity(void **state)
{
	struct fixture *f = *state;
	struct parts *p = parts_of_claim(f, "rail0", 3);

	p->devices.results[0]->share_id = (char *)"s-1";
	put_capacity(f, p->devices.results[0], "vfs", "2");
	put_capacity(f, p->devices.results[1], "memory", "80Gi");
	put_capacity(f, p->devices.results[2], "vfs", "4e0");
	add(f, &p->m);
	assert_int_equal(read_list(f, kubemsg_list_claim, &f->claim, 5, NULL), 0);
	assert_string_equal(f->claim.claim.v[0].share, "s-1");
	assert_int_equal(f->claim.claim.v[0].vfs, 2);
	assert_null(f->claim.claim.v[1].share);
	assert_int_equal(f->claim.claim.v[1].vfs, 0);
	assert_int_equal(f->claim.claim.v[2].vfs, 4);
}

static void the_users_of_a_claim_are_its_pods(void **state)
{
	static const char *const users[][3] = { { "", "pods", "p" },
						{ "scheduling.k8s.io", "podgroups", "g" },
						{ "example.com", "pods", "x" },
						{ "", "pods", "q" } };
	struct fixture *f = *state;
	struct parts *p = parts_of_claim(f, "rail0", 1);

	p->meta.name = (char *)"c";
	p->meta.uid = (char *)"c-uid";
	p->meta.deletion_timestamp = kubemsg_new(&resourceclaim__time__descriptor, f->arena);
	p->status.n_reserved_for = ARRAY_LEN(users);
	p->status.reserved_for =
		kubemsg_array(&resourceclaim__consumer__descriptor, ARRAY_LEN(users), f->arena);
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		p->status.reserved_for[i]->api_group = (char *)users[i][0];
		p->status.reserved_for[i]->resource = (char *)users[i][1];
		p->status.reserved_for[i]->name = (char *)users[i][2];
		p->status.reserved_for[i]->uid = arena_printf(f->arena, "%s-uid", users[i][2]);
	}
	add(f, &p->m);
	assert_int_equal(read_list(f, kubemsg_list_claim, &f->claim, 5, NULL), 0);
	assert_string_equal(f->claim.claim.name, "c");
	assert_string_equal(f->claim.claim.uid, "c-uid");
	assert_true(f->claim.claim.deleted);
	assert_int_equal(f->claim.claim.n_users, 2);
	assert_string_equal(f->claim.claim.users[0].pod, "p");
	assert_string_equal(f->claim.claim.users[1].pod, "q");
	assert_string_equal(f->claim.claim.users[1].uid, "q-uid");
}

static void a_claim_without_an_allocation_has_no_devices(void **state)
{
	struct fixture *f = *state;

	put_field(&f->list, 2, "", 0);
	assert_int_equal(read_list(f, kubemsg_list_claim, &f->claim, 5, NULL), 0);
	assert_true(f->claim.found);
	assert_int_equal(f->claim.claim.n, 0);
}

static void assert_no_claim(struct fixture *f, const char *why)
{
	assert_true(read_list(f, kubemsg_list_claim, &f->claim, 4096, NULL) < 0);
	if (!strstr(f->err.msg, why))
		fail_msg("'%s' does not say '%s'", f->err.msg, why);
}

static void a_result_without_a_device_is_refused(void **state)
{
	put_claim(*state, "", 1);
	assert_no_claim(*state, "lacks its request, driver, pool or device");
}

static void a_part_of_a_vf_is_refused(void **state)
{
	struct parts *p = parts_of_claim(*state, "rail0", 1);

	put_capacity(*state, p->devices.results[0], "vfs", "500m");
	add(*state, &p->m);
	assert_no_claim(*state, "the capacity vfs of request a/b is not a whole number");
}

static void a_claim_of_unreasonable_size_is_refused(void **state)
{
	put_claim(*state, "gpu", 10000);
	assert_no_claim(*state, "takes more than 262144 bytes");
}

static void a_name_is_of_one_claim(void **state)
{
	put_claim(*state, "gpu", 1);
	put_claim(*state, "gpu", 1);
	assert_no_claim(*state, "second claim");
}

static void a_refusal_is_its_sentence(void **state)
{
	static const char status[] = "k8s\0\x12\x06\x1a\x04none";
	struct fixture *f = *state;

	assert_string_equal(
		kubemsg_refusal((struct bytes) { (const uint8_t *)status, sizeof(status) - 1 },
				f->arena),
		"none");
	assert_null(kubemsg_refusal((struct bytes) { (const uint8_t *)"Forbidden", 9 }, f->arena));
	for (size_t n = 0; n < sizeof(status) - 1; n++)
		assert_null(
			kubemsg_refusal((struct bytes) { (const uint8_t *)status, n }, f->arena));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(pods_are_the_same_however_their_bytes_arrive),
		T(a_list_names_the_rest_of_it),
		T(an_object_of_unreasonable_size_is_refused_before_it_came),
		T(pods_without_end_are_bounded_with_the_array_that_has_them),
		T(the_devices_of_a_claim_are_read),
		T(shares_of_a_device_have_their_capacity),
		T(the_users_of_a_claim_are_its_pods),
		T(a_claim_without_an_allocation_has_no_devices),
		T(a_result_without_a_device_is_refused),
		T(a_part_of_a_vf_is_refused),
		T(a_claim_of_unreasonable_size_is_refused),
		T(a_name_is_of_one_claim),
		T(a_refusal_is_its_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
