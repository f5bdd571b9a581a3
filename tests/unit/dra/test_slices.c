/* The ResourceSlices of machines, by the rules of the API server. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "document/document.h"
#include "dra/slices.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/nodes.h"
#include "support/synth.h"

#define CI "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static struct arena *a;
static unsigned numbers[200]; /* of slots: 0, 1, … */

static int setup(void **state)
{
	(void)state;
	a = arena_new(0);
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
		numbers[i] = i;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

static struct node *machine_of(const char *line, const char *text)
{
	struct config *cfg = NULL;
	struct node *node;
	struct err err = { 0 };

	if (text)
		assert_int_equal(config_parse(text, strlen(text), "c", NULL, &cfg, NULL, &err), 0);
	else
		cfg = config_default();
	node = node_new(synth_inventory(line), cfg, NULL);
	config_free(cfg);
	return node;
}

static struct node *fixture_node(const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s/host.tree", FIXTURES, name);
	struct sysroot *root = fixture_open(path);
	struct config *cfg = config_default();
	struct node *node = node_new(fixture_discover(root), cfg, NULL);

	config_free(cfg);
	fixture_close(root);
	return node;
}

static const struct item *parse(const char *text)
{
	const struct item *item = NULL;
	struct err err = { 0 };

	if (document_parse(text, strlen(text), "slice", a, &item, &err) < 0)
		fail_msg("%s", err.msg);
	return item;
}

static const struct item *device(const struct slices *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct item *list = parse(s->v[i].devices);

		for (size_t k = 0; k < list->n_kids; k++) {
			if (str_eq(item_string(&list->kids[k], "name"), name))
				return &list->kids[k];
		}
	}
	return NULL;
}

static const struct item *attribute(const struct item *device, const char *name)
{
	return item_get(item_get(device, "attributes"), name);
}

static const char *string_of(const struct item *device, const char *name)
{
	return item_string(attribute(device, name), "string");
}

static int int_of(const struct item *device, const char *name)
{
	return (int)item_number(attribute(device, name), "int", -1);
}

static const struct item *capacity(const struct item *device)
{
	return item_get(item_get(device, "capacity"), "vfs");
}

/* --- what pkg/apis/resource/validation of 1.37 asks of a slice --- */

static void check_label(const char *name)
{
	assert_non_null(name);
	assert_true(*name && strlen(name) <= 63);
	assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(name));
	assert_true(*name != '-' && name[strlen(name) - 1] != '-');
}

static void check_attribute(const struct item *attribute)
{
	const char *slash = strchr(attribute->key, '/');

	assert_non_null(slash);
	assert_true(slash - attribute->key <= 63);
	assert_true(strlen(slash + 1) <= 32);
	assert_int_equal(strspn(slash + 1, CI), strlen(slash + 1));
	assert_int_equal(attribute->n_kids, 1);
	if (!strcmp(attribute->kids[0].key, "string"))
		assert_in_range(strlen(attribute->kids[0].string), 1, 64);
	else
		assert_string_equal(attribute->kids[0].key, "int");
}

static void check_capacity(const struct item *c)
{
	const struct item *policy = item_get(c, "requestPolicy"),
			  *range = item_get(policy, "validRange");
	int64_t value = item_number(c, "value", -1), step = item_number(range, "step", 0);

	assert_true(value >= 1);
	assert_int_equal(item_number(policy, "default", -1), 1);
	assert_int_equal(item_number(range, "min", -1), 1);
	assert_int_equal(item_number(range, "max", -1), value);
	assert_true(1 + step <= value);
}

static void check_device(const struct item *device, bool exact)
{
	const struct item *attributes = item_get(device, "attributes");
	size_t capacities = exact ? item_get(device, "capacity")->n_kids : 0;

	check_label(item_string(device, "name"));
	assert_true(attributes->n_kids + capacities <= 32);
	for (size_t i = 0; i < attributes->n_kids; i++)
		check_attribute(&attributes->kids[i]);
	if (exact)
		check_capacity(capacity(device));
	else
		assert_null(item_get(device, "allowMultipleAllocations"));
}

/* All of them; how many devices there are. */
static size_t check(const struct slices *s, bool exact)
{
	const char **names = arena_array(a, s->n * SLICE_DEVICES_MAX, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct item *list = parse(s->v[i].devices);
		bool tainted = false;

		assert_int_equal(list->n_kids, s->v[i].n);
		assert_in_range(list->n_kids, 1, SLICE_DEVICES_MAX);
		for (size_t k = 0; k < list->n_kids; k++) {
			tainted |= item_get(&list->kids[k], "taints") != NULL;
			check_device(&list->kids[k], exact);
			names[n] = item_string(&list->kids[k], "name");
			for (size_t m = 0; m < n; m++)
				assert_string_not_equal(names[m], names[n]);
			n++;
		}
		if (tainted)
			assert_in_range(list->n_kids, 1, SLICE_DEVICES_TAINTS_MAX);
	}
	return n;
}

static struct slices exact_of(const struct node *node, bool taints)
{
	struct slices_pool *v = arena_array(a, node->n_pools, sizeof(*v));
	const struct slices_in in = { .node = node, .v = v, .n = node->n_pools, .taints = taints };
	struct slices s;

	for (size_t i = 0; i < node->n_pools; i++)
		v[i] = (struct slices_pool) { .pool = &node->pools[i], .exact = true };
	s = slices_plan(&in, a);
	check(&s, true);
	return s;
}

/* --- slots --- */

static void slots_of_two_pools_fill_slices_one_after_the_other(void **state)
{
	struct node *node = machine_of(
		"pf:2 vf:4",
		"{\"resourceList\": ["
		"{\"resourceName\": \"a\", \"resourcePrefix\": \"rdma\", \"selectors\": {\"pfNames\": [\"none\"]}},"
		"{\"resourceName\": \"b\", \"resourcePrefix\": \"rdma\", \"selectors\": {\"pfNames\": [\"eth0\"]}}]}");
	const struct slices_pool v[] = {
		{ .pool = &node->pools[0], .slots = numbers, .n_slots = 200 },
		{ .pool = &node->pools[1], .slots = numbers, .n_slots = 100 }
	};
	const struct slices_in in = { .node = node, .v = v, .n = 2, .taints = true };
	struct slices s = slices_plan(&in, a), again = slices_plan(&in, a);
	const struct item *slot;

	(void)state;
	assert_int_equal(check(&s, false), 300);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.v[0].n, SLICE_DEVICES_MAX);
	assert_int_equal(s.v[2].n, 300 - 2 * SLICE_DEVICES_MAX);
	for (size_t i = 0; i < s.n; i++) {
		assert_string_equal(s.v[i].devices, again.v[i].devices);
		assert_int_equal(s.v[i].sum, again.v[i].sum);
	}
	assert_true(s.v[0].sum != s.v[1].sum);
	slot = device(&s, "rdma-b-slot-99");
	assert_non_null(slot);
	assert_string_equal(string_of(slot, "railmate.io/pool"), "rdma/b");
	assert_string_equal(string_of(slot, "railmate.io/link"), "infiniband");
	assert_string_equal(string_of(slot, "k8s.cni.cncf.io/resourceName"), "rdma/b");
	assert_string_equal(string_of(slot, "k8s.cni.cncf.io/deviceID"), "rdma_b-any-99");
	/* A slot is at no place. */
	assert_null(attribute(slot, "resource.kubernetes.io/pcieRoot"));
	assert_null(attribute(slot, "railmate.io/rail"));
	assert_null(device(&s, "rdma-a-slot-200"));
	node_unref(node);
}

static void without_slots_there_is_no_slice(void **state)
{
	struct node *node = machine_of("pf:1 vf:4", NULL);
	const struct slices_pool v = { .pool = node->pools };
	const struct slices_in in = { .node = node, .v = &v, .n = 1 };

	(void)state;
	assert_int_equal(slices_plan(&in, a).n, 0);
	node_unref(node);
}

static const char *first_name(const char *resource)
{
	struct pool_config cfg = { .resource = resource };
	const struct pool pool = { &cfg, NULL, 0 };
	const struct node node = { .pools = &pool, .n_pools = 1 };
	const struct slices_pool v = { .pool = &pool, .slots = numbers + 7, .n_slots = 1 };
	const struct slices_in in = { .node = &node, .v = &v, .n = 1 };
	struct slices s = slices_plan(&in, a);
	const char *name = item_string(&parse(s.v[0].devices)->kids[0], "name");
	struct slices_device found;

	assert_int_equal(check(&s, false), 1);
	assert_true(slices_find(&node, name, &found));
	assert_ptr_equal(found.pool, &pool);
	assert_null(found.place);
	assert_int_equal(found.number, 7);
	return name;
}

static void every_resource_has_names_of_its_own(void **state)
{
	static const char *const resources[] = {
		"rdma/vf",
		"nvidia.com/mlnx_nics",
		"nvidia.com/mlnx-nics",
		"nvidia.com/mlnx.nics",
		"rdma/a-b",
		"rdma-a/b",
		"rdma/VF",
		"rdma/x_",
		"a.very.long.domain.of.some.company.example/with-a-name-that-is-long-x",
		"a.very.long.domain.of.some.company.example/with-a-name-that-is-long-y",
	};

	(void)state;
	assert_string_equal(first_name("rdma/vf"), "rdma-vf-slot-7");
	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(first_name(resources[i]), first_name(resources[k]));
	}
}

/* --- places --- */

static void a_pf_is_a_device_with_its_place(void **state)
{
	struct node *node = machine_of("numa:2 switch:2 gpu:1 pf:1 vf:4", NULL);
	struct slices s = exact_of(node, false);
	const char *pf = node->pools[0].devs[4].pf->address;
	char *name = arena_printf(a, "rdma-vf-%s", pf);
	const struct hw_pci *f = &node->inv->pci[node->pools[0].devs[4].pf->pci];
	const struct item *d;
	struct slices_device found;
	char up[BDF_STRLEN];

	(void)state;
	assert_int_equal(s.n, 1);
	assert_int_equal(s.v[0].n, 4);
	for (char *p; (p = strpbrk(name, ":."));)
		*p = '-';
	d = device(&s, name);
	assert_non_null(d);
	assert_true(item_get(d, "allowMultipleAllocations")->boolean);
	assert_int_equal(item_number(capacity(d), "value", -1), 4);
	assert_string_equal(string_of(d, "resource.kubernetes.io/pciBusID"), pf);
	assert_string_equal(string_of(d, "resource.kubernetes.io/pcieRoot"),
			    arena_printf(a, "pci%04x:%02x", f->root_domain, f->root_bus));
	assert_string_equal(string_of(d, "railmate.io/complex"),
			    string_of(d, "resource.kubernetes.io/pcieRoot"));
	assert_string_equal(string_of(d, "railmate.io/pcieSwitch"),
			    bdf_format(node->inv->pci[node->inv->pci[f->parent].parent].bdf, up));
	assert_int_equal(int_of(d, "resource.kubernetes.io/numaNode"), f->numa);
	assert_int_equal(int_of(d, "railmate.io/rail"), 1);
	assert_string_equal(string_of(d, "railmate.io/driver"), "mlx5_core");
	assert_null(item_get(d, "taints"));
	assert_true(slices_find(node, name, &found));
	assert_string_equal(found.place, pf);
	assert_false(slices_find(node, "rdma-vf-0000-00-00-0", &found));
	assert_false(slices_find(node, "rdma-vf-slot-x", &found));
	node_unref(node);
}

/* GPUs and its VFs meet at the data direct function's root. */
static void pcie_root_is_that_of_the_data_direct_function(void **state)
{
	struct node *node = fixture_node("gb300-like");
	struct slices s = exact_of(node, false);
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < s.v[0].n; i++) {
		const struct item *d = &parse(s.v[0].devices)->kids[i];
		const char *root = string_of(d, "resource.kubernetes.io/pcieRoot");

		assert_string_not_equal(root, string_of(d, "railmate.io/complex"));
		for (size_t g = 0; g < node->inv->n_gpu; g++) {
			const struct hw_pci *gpu = &node->inv->pci[node->inv->gpu[g].pci];

			n += !strcmp(root, arena_printf(a, "pci%04x:%02x", gpu->root_domain,
							gpu->root_bus));
		}
	}
	assert_true(n > 0);
	node_unref(node);
}

/* A step of one must leave room below the capacity. */
static void a_vf_without_a_visible_pf_is_a_device(void **state)
{
	struct node *node = machine_of("gpu:1 pf:1 vf:2 nopf hyper flat", NULL);
	struct slices s = exact_of(node, true);
	const struct item *d = &parse(s.v[0].devices)->kids[0];

	(void)state;
	assert_int_equal(s.v[0].n, 2);
	assert_int_equal(item_number(capacity(d), "value", -1), 1);
	assert_string_equal(string_of(d, "resource.kubernetes.io/pciBusID"),
			    node->pools[0].devs[0].id);
	node_unref(node);
}

static void only_vfs_for_claims_are_counted(void **state)
{
	struct node *node = machine_of("pf:1 vf:4", NULL);
	struct pool_dev *devs = arena_copy(a, node->pools[0].devs, 4 * sizeof(*devs));
	const struct pool pool = { node->pools[0].cfg, devs, 4 };
	const char *lost = devs[1].id;
	const struct slices_pool v = { .pool = &pool, .exact = true, .lost = &lost, .n_lost = 1 };
	const struct slices_in in = { .node = node, .v = &v, .n = 1, .taints = true };
	struct slices s = slices_plan(&in, a);
	const struct item *d = &parse(s.v[0].devices)->kids[0];

	(void)state;
	assert_int_equal(item_number(capacity(d), "value", -1), 3);
	devs[0].healthy = false;
	devs[0].fault = POOL_FAULT_NO_DRIVER;
	devs[3].left_over = true;
	s = slices_plan(&in, a);
	assert_int_equal(check(&s, true), 1);
	d = &parse(s.v[0].devices)->kids[0];
	assert_int_equal(item_number(capacity(d), "value", -1), 1);
	assert_null(item_get(d, "taints"));
	devs[2].healthy = false;
	devs[2].fault = POOL_FAULT_GONE;
	assert_int_equal(slices_plan(&in, a).n, 0);
	node_unref(node);
}

static void a_link_that_is_down_is_a_taint(void **state)
{
	struct node *node = machine_of("pf:1 vf:2", NULL);
	struct pool_dev *devs = arena_copy(a, node->pools[0].devs, 2 * sizeof(*devs));
	const struct pool pool = { node->pools[0].cfg, devs, 2 };
	const struct slices_pool v = { .pool = &pool, .exact = true };
	struct slices_in in = { .node = node, .v = &v, .n = 1, .taints = true };
	const struct item *taints;
	struct slices s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		devs[i].healthy = false;
		devs[i].fault = POOL_FAULT_LINK_DOWN;
	}
	s = slices_plan(&in, a);
	assert_int_equal(check(&s, true), 1);
	taints = item_get(&parse(s.v[0].devices)->kids[0], "taints");
	assert_int_equal(taints->n_kids, 1);
	assert_string_equal(item_string(&taints->kids[0], "key"), "railmate.io/link-down");
	assert_string_equal(item_string(&taints->kids[0], "effect"), "NoSchedule");
	in.taints = false;
	assert_int_equal(slices_plan(&in, a).n, 0);
	node_unref(node);
}

/* Of Ethernet, where the pool names one. */
static void a_family_of_gids_is_an_attribute(void **state)
{
	struct node *node = fixture_node("l40s-no-affinity");
	struct pool_config cfg = *node->pools[0].cfg;
	const struct pool pool = { &cfg, node->pools[0].devs, node->pools[0].n_devs };
	const struct slices_pool v = { .pool = &pool, .slots = numbers, .n_slots = 1 };
	struct slices_in in = { .node = node, .v = &v, .n = 1 };
	struct slices s = slices_plan(&in, a);

	(void)state;
	assert_string_equal(string_of(device(&s, "rdma-vf-slot-0"), "railmate.io/link"),
			    "ethernet");
	assert_null(attribute(device(&s, "rdma-vf-slot-0"), "railmate.io/gidFamily"));
	cfg.gid_family = GID_FAMILY_IPV6;
	s = slices_plan(&in, a);
	assert_string_equal(string_of(device(&s, "rdma-vf-slot-0"), "railmate.io/gidFamily"),
			    "ipv6");
	node_unref(node);
}

static void slices_with_taints_are_half_as_long(void **state)
{
	struct node *node = machine_of("numa:2 switch:5 pf:10 vf:1", NULL);

	(void)state;
	assert_int_equal(exact_of(node, false).n, 1);
	assert_int_equal(exact_of(node, true).n, 2);
	assert_int_equal(exact_of(node, true).v[0].n, SLICE_DEVICES_TAINTS_MAX);
	node_unref(node);
}

static void every_machine_is_within_the_limits(void **state)
{
	glob_t found;
	size_t n = 0;

	(void)state;
	assert_int_equal(glob(FIXTURES "/*/host.tree", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char *name = arena_strdup(a, found.gl_pathv[i] + strlen(FIXTURES "/"));
		struct node *node;

		*strchr(name, '/') = '\0';
		node = fixture_node(name);
		n += exact_of(node, true).n;
		node_unref(node);
	}
	assert_true(n > 20);
	globfree(&found);
}

/* --- the object --- */

static void an_object_names_node_pool_and_owner(void **state)
{
	const struct slice slice = { "[{\"name\":\"x\"}]", 1, 7 };
	struct slice_object o = { .slice = &slice,
				  .driver = "vf.railmate.io",
				  .node_name = "worker-1.example",
				  .node_uid = "u-1",
				  .generation = 5,
				  .index = 1,
				  .count = 2,
				  .mark = "m" };
	struct strbuf text = STRBUF_INIT;
	const struct item *metadata;

	(void)state;
	slices_write(&o, &text);
	assert_string_equal(
		text.s,
		"{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":"
		"{\"generateName\":\"worker-1.example-vf.railmate.io-\",\"annotations\":"
		"{\"railmate.io/slice\":\"m\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
		"\"Node\",\"name\":\"worker-1.example\",\"uid\":\"u-1\",\"controller\":true}]},"
		"\"spec\":{\"driver\":\"vf.railmate.io\",\"nodeName\":\"worker-1.example\",\"pool\":"
		"{\"name\":\"worker-1.example\",\"generation\":5,\"resourceSliceCount\":2},"
		"\"devices\":[{\"name\":\"x\"}]}}");
	text.len = 0;
	o.name = "n-1";
	o.version = "17";
	slices_write(&o, &text);
	metadata = item_get(parse(text.s), "metadata");
	assert_string_equal(item_string(metadata, "name"), "n-1");
	assert_string_equal(item_string(metadata, "resourceVersion"), "17");
	assert_null(item_get(metadata, "generateName"));
	strbuf_done(&text);
}

/* The API server takes 58 characters of it, and looks at it as at a name. */
static void the_name_of_an_object_is_legal_where_the_nodes_is_long(void **state)
{
	const struct slice slice = { "[]", 0, 0 };
	char node[254];

	(void)state;
	memset(node, 'n', sizeof(node) - 1);
	node[253] = '\0';
	for (int dot = 40; dot < 60; dot++) {
		struct slice_object o = {
			.slice = &slice, .driver = "d.example", .node_name = node, .mark = ""
		};
		struct strbuf text = STRBUF_INIT;
		const char *name;

		node[dot] = '.';
		slices_write(&o, &text);
		name = item_string(item_get(parse(text.s), "metadata"), "generateName");
		assert_in_range(strlen(name), 2, 58);
		assert_true(name[strlen(name) - 2] == 'n');
		assert_true(name[strlen(name) - 1] == '-');
		strbuf_done(&text);
		node[dot] = 'n';
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_of_two_pools_fill_slices_one_after_the_other),
		TEST(without_slots_there_is_no_slice),
		TEST(every_resource_has_names_of_its_own),
		TEST(a_pf_is_a_device_with_its_place),
		TEST(pcie_root_is_that_of_the_data_direct_function),
		TEST(a_vf_without_a_visible_pf_is_a_device),
		TEST(only_vfs_for_claims_are_counted),
		TEST(a_link_that_is_down_is_a_taint),
		TEST(a_family_of_gids_is_an_attribute),
		TEST(slices_with_taints_are_half_as_long),
		TEST(every_machine_is_within_the_limits),
		TEST(an_object_names_node_pool_and_owner),
		TEST(the_name_of_an_object_is_legal_where_the_nodes_is_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
