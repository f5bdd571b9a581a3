#include "support/vfpool.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "grant/grant.h"

static int allocate_of(const struct pool *pool, struct ids ids, const int *gpus, size_t n_gpus,
		       struct edits *ret, struct err *err)
{
	struct grant grant;
	int r;

	*err = (struct err) { 0 };
	r = grant_of_ids(m.node, pool, &ids, m.root, (struct gpu_set) { gpus, n_gpus, 0 }, a,
			 &grant, err);
	return r < 0 ? r : render_grant(&grant, a, ret, err);
}

static int allocate(struct ids ids, struct edits *ret, struct err *err)
{
	return allocate_of(m.pool, ids, NULL, 0, ret, err);
}

static const char *env(const struct edits *e, const char *key)
{
	for (size_t i = 0; i < e->n_envs; i++) {
		if (!strcmp(e->envs[i].key, key))
			return e->envs[i].value;
	}
	fail_msg("%s is not set", key);
	return NULL;
}

static const struct hw_rdma *rdma_of(size_t i)
{
	return &m.node->inv->rdma[m.pool->devs[i].rdma];
}

static void grants_in_address_order_each_once(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	assert_int_equal(allocate(ids_of(3, id(5), id(2), id(5)), &e, &err), 0);
	assert_string_equal(env(&e, "PCIDEVICE_RDMA_VF"), arena_printf(a, "%s,%s", id(2), id(5)));
	assert_string_equal(env(&e, "NCCL_IB_HCA"),
			    arena_printf(a, "=%s:1,%s:1", rdma_of(2)->name, rdma_of(5)->name));
	assert_int_equal(e.n_devs, 3);
	assert_string_equal(e.devs[0].host,
			    arena_printf(a, "/dev/infiniband/%s", rdma_of(2)->uverbs));
	assert_string_equal(e.devs[2].host, "/dev/infiniband/rdma_cm");
}

static void known_gpus_are_paired(void **state)
{
	int gpus[] = { synth_gpu(m.node->inv, 2) };
	struct ids ids = ids_of(1, id(4));
	struct edits with, without;
	struct err err;

	(void)state;
	assert_int_equal(allocate_of(m.pool, ids, gpus, 1, &with, &err), 0);
	assert_int_equal(allocate(ids, &without, &err), 0);
	assert_true(with.n_envs > without.n_envs);
}

static void names_are_read_again_when_they_changed(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	machine_remove(&m, DEV "/infiniband", id(0));
	machine_remove(&m, DEV "/infiniband_verbs", id(0));
	machine_put_rdma(&m, id(0), "mlx5_77", "uverbs99");
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err), 0);
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=mlx5_77:1");
	assert_string_equal(e.devs[0].host, "/dev/infiniband/uverbs99");
}

static void renamed_device_with_its_old_node_is_noticed(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	machine_remove(&m, DEV "/infiniband", id(0));
	machine_put_rdma(&m, id(0), "rail0", rdma_of(0)->uverbs);
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err), 0);
	assert_string_equal(env(&e, "NCCL_IB_HCA"), "=rail0:1");
}

static void assert_refused(struct ids ids, int code, const char *sentence)
{
	struct edits e = { .n_envs = 77 };
	struct err err;

	assert_int_equal(allocate(ids, &e, &err), -code);
	assert_string_equal(err.msg, sentence);
	assert_int_equal(e.n_envs, 77); /* all or nothing */
}

static void unknown_id_is_refused(void **state)
{
	(void)state;
	assert_refused(
		ids_of(2, id(0), "0000:ff:00.1"), ENOENT,
		"device '0000:ff:00.1' is not in the pool rdma/vf of this node: was the configuration changed?");
}

static void strange_id_is_shown_short_and_printable(void **state)
{
	(void)state;
	assert_refused(
		ids_of(1, "a\nb\x1b[31m"), ENOENT,
		"device 'a?b?[31m' is not in the pool rdma/vf of this node: was the configuration changed?");
	/* 63 bytes, then a character of two: it is left out whole */
	assert_refused(
		ids_of(1,
		       "012345678901234567890123456789012345678901234567890123456789abc\xc3\xa9xyz"),
		ENOENT,
		"device '012345678901234567890123456789012345678901234567890123456789abc...' is not in the pool rdma/vf of this node: was the configuration changed?");
}

static void empty_request_is_refused(void **state)
{
	(void)state;
	assert_refused(ids_of(0), EINVAL, "the request for rdma/vf names no device");
}

static void lose_rdma(const char *bdf)
{
	machine_remove(&m, DEV "/infiniband", bdf);
	machine_remove(&m, DEV "/infiniband_verbs", bdf);
}

static void vf_bound_to_vfio_tells_what_to_do(void **state)
{
	(void)state;
	lose_rdma(id(1));
	machine_link(&m, "../drivers/vfio-pci", DEV "/driver", id(1));
	assert_refused(
		ids_of(2, id(0), id(1)), EIO,
		arena_printf(
			a,
			"VF %s is bound to vfio-pci, which has no RDMA device: bind it to mlx5_core (echo %s > /sys/bus/pci/devices/%s/driver/unbind; echo %s > /sys/bus/pci/drivers_probe) or select drivers in the pool",
			id(1), id(1), id(1), id(1)));
}

static void vf_without_driver_tells_what_to_do(void **state)
{
	(void)state;
	lose_rdma(id(1));
	machine_remove(&m, DEV "/driver", id(1));
	assert_refused(
		ids_of(1, id(1)), EIO,
		arena_printf(
			a,
			"VF %s has no driver: bind it to mlx5_core (echo %s > /sys/bus/pci/drivers_probe)",
			id(1), id(1)));
}

/* The PF's driver is not always the VFs'. */
static void vf_whose_driver_differs_from_its_pf_is_told_so(void **state)
{
	const struct hw_inventory *inv = m.node->inv;

	(void)state;
	inv->pci[inv->pci[m.pool->devs[1].pci].physfn].driver = "igb";
	lose_rdma(id(1));
	machine_link(&m, "../drivers/igbvf", DEV "/driver", id(1));
	assert_refused(
		ids_of(1, id(1)), EIO,
		arena_printf(
			a,
			"VF %s is bound to igbvf but has no RDMA device: load the driver's RDMA module (mlx5_ib for mlx5_core), or see whether a container's network namespace holds it (rdma system show)",
			id(1)));
	machine_remove(&m, DEV "/driver", id(1));
	assert_refused(
		ids_of(1, id(1)), EIO,
		arena_printf(
			a,
			"VF %s has no driver: bind it to igbvf (echo %s > /sys/bus/pci/drivers_probe)",
			id(1), id(1)));
}

static void vf_whose_rdma_device_is_away_tells_where_to_look(void **state)
{
	(void)state;
	lose_rdma(id(1));
	assert_refused(
		ids_of(1, id(1)), EIO,
		arena_printf(
			a,
			"VF %s is bound to mlx5_core but has no RDMA device: load the driver's RDMA module (mlx5_ib for mlx5_core), or see whether a container's network namespace holds it (rdma system show)",
			id(1)));
}

static void vf_without_verbs_node_tells_what_to_do(void **state)
{
	(void)state;
	machine_remove(&m, DEV "/infiniband_verbs", id(1));
	assert_refused(
		ids_of(1, id(1)), EIO,
		arena_printf(
			a,
			"VF %s has the RDMA device %s but no verbs node: load ib_uverbs (modprobe ib_uverbs)",
			id(1), rdma_of(1)->name));
}

static void vf_that_is_gone_is_refused(void **state)
{
	(void)state;
	machine_remove(&m, DEV, id(1));
	assert_refused(
		ids_of(1, id(1)), ENODEV,
		arena_printf(
			a,
			"VF %s is gone from this node: were the PF's VFs removed (sriov_numvfs)?",
			id(1)));
}

static void vf_that_was_gone_at_the_last_scan_is_refused(void **state)
{
	struct pool_dev dev = { .id = "0000:10:00.1", .pci = -1, .rdma = -1, .numa = -1 };
	struct pool pool = { &pool_cfg, &dev, 1 };
	struct ids ids = ids_of(1, dev.id);
	struct edits e;
	struct err err;

	(void)state;
	assert_int_equal(allocate_of(&pool, ids, NULL, 0, &e, &err), -ENODEV);
}

static void pool_without_rdma_takes_any_driver(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	pool_cfg.is_rdma = false;
	lose_rdma(id(1));
	machine_link(&m, "../drivers/vfio-pci", DEV "/driver", id(1));
	assert_int_equal(allocate(ids_of(1, id(1)), &e, &err), 0);
	assert_int_equal(e.n_devs, 1);
	assert_string_equal(e.devs[0].host, "/dev/vfio/vfio");
}

static const char *info(const struct edits *e)
{
	for (size_t i = 0; i < e->n_envs; i++) {
		if (!strcmp(e->envs[i].key, "PCIDEVICE_RDMA_VF_INFO"))
			return e->envs[i].value;
	}
	return "";
}

static void vf_of_a_user_space_driver_gets_its_nodes(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	pool_cfg.is_rdma = false;
	lose_rdma(id(1));
	lose_rdma(id(2));
	machine_link(&m, "../drivers/vfio-pci", DEV "/driver", id(1));
	machine_link(&m, "../../../../kernel/iommu_groups/17", DEV "/iommu_group", id(1));
	machine_link(&m, "../drivers/igb_uio", DEV "/driver", id(2));
	machine_dir(&m, DEV "/uio/uio3", id(2));
	assert_int_equal(allocate(ids_of(2, id(1), id(2)), &e, &err), 0);
	assert_int_equal(e.n_devs, 3);
	assert_string_equal(e.devs[0].host, "/dev/vfio/vfio");
	assert_string_equal(e.devs[1].host, "/dev/vfio/17");
	assert_string_equal(e.devs[2].host, "/dev/uio3");
	assert_string_equal(e.devs[2].permissions, "rw");
	assert_non_null(
		strstr(info(&e),
		       "\"vfio\":{\"dev-mount\":\"/dev/vfio/17\",\"mount\":\"/dev/vfio/vfio\"}"));
	assert_non_null(strstr(info(&e), "\"uio\":{\"mount\":\"/dev/uio3\"}"));
}

static void without_an_iommu_the_node_has_another_name_on_the_host(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	pool_cfg.is_rdma = false;
	lose_rdma(id(1));
	machine_link(&m, "../drivers/vfio-pci", DEV "/driver", id(1));
	machine_link(&m, "../../../../kernel/iommu_groups/3", DEV "/iommu_group", id(1));
	machine_file(&m, "vfio-noiommu\n", "sys/kernel/iommu_groups/3/name");
	assert_int_equal(allocate(ids_of(1, id(1)), &e, &err), 0);
	assert_int_equal(e.n_devs, 2);
	assert_string_equal(e.devs[1].host, "/dev/vfio/noiommu-3");
	assert_string_equal(e.devs[1].container, "/dev/vfio/3");
}

static void umad_is_given_when_the_pool_says_so(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	machine_file(&m, m.node->inv->rdma[m.pool->devs[1].rdma].name,
		     DEV "/infiniband_mad/umad7/ibdev", id(1));
	machine_file(&m, m.node->inv->rdma[m.pool->devs[1].rdma].name,
		     DEV "/infiniband_mad/issm7/ibdev", id(1));
	assert_int_equal(allocate(ids_of(1, id(1)), &e, &err), 0);
	assert_null(strstr(info(&e), "umad"));
	pool_cfg.umad = true;
	assert_int_equal(allocate(ids_of(1, id(1)), &e, &err), 0);
	assert_int_equal(e.n_devs, 3);
	assert_string_equal(e.devs[0].host, "/dev/infiniband/umad7");
	assert_non_null(strstr(info(&e), "\"umad\":\"/dev/infiniband/umad7\""));
}

static void use_ethernet(void)
{
	static const struct hw_port port = { 1, "ACTIVE", "LinkUp", HW_LINK_ETHERNET, 400000 };

	for (size_t i = 0; i < m.node->inv->n_rdma; i++)
		m.node->inv->rdma[i].ports = &port;
}

static void gid_table_is_read_where_it_is_final(void **state)
{
	static const char gid[] = "0000:0000:0000:0000:0000:ffff:0a00:0001\n";
	struct edits e;
	struct err err;

	(void)state;
	use_ethernet();
	pool_cfg.network = NETWORK_HOST;
	machine_file(&m, gid, "sys/class/infiniband/%s/ports/1/gids/3", rdma_of(0)->name);
	machine_file(&m, "RoCE v2\n", "sys/class/infiniband/%s/ports/1/gid_attrs/types/3",
		     rdma_of(0)->name);
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err), 0);
	assert_string_equal(env(&e, "NCCL_IB_GID_INDEX"), "3");
}

static void fixed_gid_that_cannot_be_read_tells_what_to_do(void **state)
{
	struct edits e;
	struct err err;

	(void)state;
	use_ethernet();
	pool_cfg.gid = GID_FIXED;
	pool_cfg.gid_index = 3;
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err),
			 0); /* in the pod's network: not ours to check */
	pool_cfg.network = NETWORK_HOST;
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err), -EINVAL);
	assert_non_null(strstr(err.msg, id(0)));
	pool_cfg.gid = GID_AUTO;
	assert_int_equal(allocate(ids_of(1, id(0)), &e, &err), 0);
}

/* --- the probe --- */

/* How many mounts a container of the pool has; run: its run directory, NULL: as plan asks. */
static int mounts_of(const char *run, const char *probe, struct bindmount ret[GRANT_MOUNTS])
{
	struct pool_vfs vfs = { m.pool, ids_of(1, id(0)) };
	const struct grant_container c = { .pool_vfs = &vfs, .n_pool_vfs = 1 };
	struct err err = { 0 };

	return grant_make_directory(run, probe, &c, a, ret, &err);
}

static void probe_is_mounted_where_it_is_and_is_wanted(void **state)
{
	const char *run = arena_printf(a, "%s/run", m.dir),
		   *probe = arena_printf(a, "%s/probe", m.dir);
	struct bindmount mounts[GRANT_MOUNTS];
	FILE *program;

	(void)state;
	pool_cfg.profiles = PROFILE_NCCL;
	pool_cfg.probe = true;
	assert_int_equal(mounts_of(run, NULL, mounts), 1);
	assert_int_equal(mkdir(probe, 0755), 0);
	assert_int_equal(mounts_of(run, probe, mounts), 1); /* the program is not there yet */
	program = fopen(arena_printf(a, "%s/" PROBE_PROGRAM, probe), "we");
	assert_non_null(program);
	fclose(program);
	assert_int_equal(mounts_of(run, probe, mounts), 2);
	assert_string_equal(mounts[0].container, "/run/railmate");
	assert_string_equal(mounts[1].container, "/run/railmate/probe");
	assert_string_equal(mounts[1].host, probe);
	assert_true(mounts[1].read_only);
	assert_int_equal(access(arena_printf(a, "%s/probe", mounts[0].host), F_OK), 0);
	pool_cfg.probe = false;
	assert_int_equal(mounts_of(run, probe, mounts), 1);
	pool_cfg.probe = true;
	pool_cfg.profiles = 0; /* no files: no place to mount it over */
	assert_int_equal(mounts_of(run, probe, mounts), 0);
}

static void plan_shows_the_probe_wherever_it_is(void **state)
{
	struct bindmount mounts[GRANT_MOUNTS];

	(void)state;
	pool_cfg.profiles = PROFILE_NCCL;
	pool_cfg.probe = true;
	assert_int_equal(mounts_of(NULL, "/nowhere/probe", mounts), 2);
	assert_string_equal(mounts[1].host, "/nowhere/probe");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(grants_in_address_order_each_once),
		T(known_gpus_are_paired),
		T(names_are_read_again_when_they_changed),
		T(renamed_device_with_its_old_node_is_noticed),
		T(unknown_id_is_refused),
		T(strange_id_is_shown_short_and_printable),
		T(empty_request_is_refused),
		T(vf_bound_to_vfio_tells_what_to_do),
		T(vf_of_a_user_space_driver_gets_its_nodes),
		T(without_an_iommu_the_node_has_another_name_on_the_host),
		T(umad_is_given_when_the_pool_says_so),
		T(vf_without_driver_tells_what_to_do),
		T(vf_whose_driver_differs_from_its_pf_is_told_so),
		T(vf_whose_rdma_device_is_away_tells_where_to_look),
		T(vf_without_verbs_node_tells_what_to_do),
		T(vf_that_is_gone_is_refused),
		T(vf_that_was_gone_at_the_last_scan_is_refused),
		T(pool_without_rdma_takes_any_driver),
		T(gid_table_is_read_where_it_is_final),
		T(fixed_gid_that_cannot_be_read_tells_what_to_do),
		T(probe_is_mounted_where_it_is_and_is_wanted),
		T(plan_shows_the_probe_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
