/* A VF as it is when its container starts: from trees, and from real network namespaces whose
 * loopback interface poses as a VF's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "devstate/devstate-internal.h"
#include "support/slow.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define VF     "sys/bus/pci/devices/0000:3b:00.1"
#define IB     "sys/class/infiniband/mlx5_4"
#define PORT   IB "/ports/1"
#define DRIVER "l " VF "/driver -> ../../drivers/mlx5_core\n"
#define RDMA                                                                                       \
	"d " VF "/infiniband/mlx5_4\n"                                                             \
	"f " VF "/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"                                    \
	"f " VF "/infiniband_verbs/uverbs4/dev = 231:196\\n\n"
#define MODE(value) "f sys/module/ib_core/parameters/netns_mode = " value "\\n\n"
#define ETHERNET                                                                                   \
	"f " PORT "/link_layer = Ethernet\\n\n"                                                    \
	"f " PORT "/state = 4: ACTIVE\\n\n"

static const struct bdf vf = { 0, 0x3b, 0, 1 };
static struct arena *a;
static struct err err;
static struct sysroot *root;
static struct vf_state now;

static int set_up(void **state)
{
	(void)state;
	a = arena_new(0);
	err = (struct err) { 0 };
	now = (struct vf_state) { .port = -1 };
	root = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (root)
		fixture_close(root);
	arena_free(a);
	return 0;
}

/* --- a tree --- */

static void look_at(const char *text)
{
	root = fixture_text(text);
	assert_int_equal(devstate_vfs(root, NULL, &vf, 1, a, &now, &err), 0);
}

static void tells_all_of_a_vf_that_the_host_has(void **state)
{
	(void)state;
	look_at(DRIVER RDMA MODE("Y") ETHERNET
		"d " VF "/net/ens1v0\n"
		"f sys/class/net/ens1v0/mtu = 4200\\n\n"
		"f " PORT "/gids/0 = fe80:0000:0000:0000:0000:00ff:fe00:0001\\n\n"
		"f " PORT "/gids/1 = 0000:0000:0000:0000:0000:0000:0000:0000\\n\n"
		"f " PORT "/gids/2 = 0000:0000:0000:0000:0000:ffff:0a00:0007\\n\n"
		"f " PORT "/gid_attrs/types/2 = RoCE v2\\n\n"
		"f " PORT "/gid_attrs/ndevs/2 = ens1v0\\n\n"
		"f " PORT "/pkeys/0 = 0xffff\\n\n"
		"f " PORT "/pkeys/1 = 0x0000\\n\n"
		"f " PORT "/pkeys/2 = 0x8001\\n\n");
	assert_int_equal(now.seen, VF_SEEN_HOST);
	assert_null(now.why);
	assert_null(now.netns);
	assert_string_equal(now.netdev, "ens1v0");
	assert_int_equal(now.mtu, 4200);
	assert_string_equal(now.rdma, "mlx5_4");
	assert_string_equal(now.uverbs, "uverbs4");
	assert_int_equal(now.port, 1);
	assert_string_equal(now.port_state, "ACTIVE");
	assert_int_equal(now.link, HW_LINK_ETHERNET);
	assert_int_equal(now.n_gids, 2);
	assert_int_equal(now.gids[1].index, 2);
	assert_string_equal(now.gids[1].type, "RoCE v2");
	assert_string_equal(now.gids[1].ndev, "ens1v0");
	assert_int_equal(now.gid_table_len, 3);
	assert_int_equal(now.n_pkeys, 3);
	assert_int_equal(now.pkeys[1], 0);
	assert_int_equal(now.pkeys[2], 0x8001);
	assert_int_equal(now.exclusive, 0);
	assert_false(now.addrs_known); /* this is not the running machine */
}

static void takes_the_port_that_is_up(void **state)
{
	(void)state;
	look_at(DRIVER RDMA "d " VF "/net/ens1v0\n"
			    "f " PORT "/state = 1: DOWN\\n\n"
			    "f " IB "/ports/2/state = 4: ACTIVE\\n\n"
			    "f " IB "/ports/2/link_layer = InfiniBand\\n\n");
	assert_int_equal(now.port, 2);
	assert_int_equal(now.link, HW_LINK_IB);
	assert_int_equal(now.exclusive, -1);
}

static void a_vf_without_a_driver_is_here_and_has_nothing(void **state)
{
	(void)state;
	look_at("d " VF "\n");
	assert_int_equal(now.seen, VF_SEEN_HOST);
	assert_null(now.netdev);
	assert_null(now.rdma);
	assert_int_equal(now.port, 1);
}

static void a_vf_that_is_gone_is_an_error(void **state)
{
	(void)state;
	root = fixture_text("d sys/bus/pci/devices\n");
	assert_int_equal(devstate_vfs(root, NULL, &vf, 1, a, &now, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "0000:3b:00.1"));
}

static void a_vf_whose_interface_is_away_keeps_the_tables_of_the_host(void **state)
{
	(void)state;
	look_at(DRIVER RDMA MODE("Y") ETHERNET
		"f " PORT "/gids/0 = fe80:0000:0000:0000:0000:00ff:fe00:0001\\n\n");
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(now.why);
	assert_null(now.netdev);
	assert_int_equal(now.n_gids, 1);
	assert_false(now.addrs_known);
}

static void of_an_rdma_device_that_moved_away_the_verbs_device_tells_the_name(void **state)
{
	(void)state;
	look_at(DRIVER MODE("N") "f " VF "/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"
				 "f " VF "/infiniband_verbs/uverbs4/dev = 231:196\\n\n");
	assert_int_equal(now.seen, VF_SEEN_NOTHING);
	assert_non_null(now.why);
	assert_string_equal(now.rdma, "mlx5_4");
	assert_string_equal(now.uverbs, "uverbs4");
	assert_int_equal(now.exclusive, 1);
	assert_int_equal(now.n_gids, 0);
}

#define INFINIBAND                                                                                 \
	"f " PORT "/link_layer = InfiniBand\\n\n"                                                  \
	"f " PORT "/state = 4: ACTIVE\\n\n"

static void infiniband_needs_no_interface(void **state)
{
	(void)state;
	look_at(DRIVER RDMA INFINIBAND "d sys/module/ib_ipoib\n");
	assert_int_equal(now.seen, VF_SEEN_HOST);
	assert_null(now.why);
}

/* --- real namespaces --- */

static char *dir; /* of namespaces */

static char *path_of(const char *name)
{
	return arena_printf(a, "%s/%s", dir, name);
}

static void in_a_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static bool set_up_lo(const char *address)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return false;
	sin.sin_addr.s_addr = htonl((uint32_t)strtoul(address, NULL, 16));
	memcpy(&ifr.ifr_addr, &sin, sizeof(sin));
	if (ioctl(fd, SIOCSIFADDR, &ifr) < 0)
		return false;
	sin.sin_addr.s_addr = htonl(0xffffff00);
	memcpy(&ifr.ifr_netmask, &sin, sizeof(sin));
	return ioctl(fd, SIOCSIFNETMASK, &ifr) == 0;
}

struct making {
	const char *name, *address;
	bool ok;
};

static void *make(void *arg)
{
	struct making *w = arg;
	_cleanup_close_ int fd = open(path_of(w->name), O_RDONLY | O_CREAT | O_CLOEXEC, 0444);

	w->ok = fd >= 0 && unshare(CLONE_NEWNET) == 0 && set_up_lo(w->address) &&
		mount("/proc/thread-self/ns/net", path_of(w->name), NULL, MS_BIND, NULL) == 0;
	return NULL;
}

/* As a runtime does; its loopback interface has an address of its own. */
static void namespace(const char *name, const char *address)
{
	struct making w = { name, address, false };

	in_a_thread(make, &w);
	assert_true(w.ok);
}

static bool may_make_namespaces;

/* Mounts of the test are its own, and end with it. */
static int own_mounts(void **state)
{
	(void)state;
	may_make_namespaces =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return 0;
}

static int set_up_namespaces(void **state)
{
	dir = fixture_folder();
	return set_up(state);
}

static int tear_down_namespaces(void **state)
{
	static const char *const names[] = { "old", "new", "own" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		umount2(path_of(names[i]), MNT_DETACH);
	fixture_remove_tree(dir);
	free(dir);
	return tear_down(state);
}

static bool lo_is_the_vf(const char *netdev, struct bdf *ret)
{
	*ret = vf;
	return !strcmp(netdev, "lo");
}

static bool nothing_is_the_vf(const char *netdev, struct bdf *ret)
{
	(void)netdev;
	*ret = (struct bdf) { 0, 0x3b, 0, 2 };
	return true;
}

static int no_sysfs(struct sysroot **ret, struct err *e)
{
	(void)ret;
	return err_set(e, EACCES, "mount of sysfs: Permission denied");
}

/* What the namespace's sysfs would show. */
static const char *inside;
static unsigned opened, closed;

static int sysfs_inside(struct sysroot **ret, struct err *e)
{
	(void)e;
	opened++;
	*ret = fixture_text(inside);
	return 0;
}

static void close_inside(struct sysroot *sysfs)
{
	closed++;
	fixture_close(sysfs);
}

static struct netns_calls calls;
static const char *where;
static int result;

static void *look(void *arg)
{
	(void)arg;
	result = devstate_vfs_by(&calls, root, where, &vf, 1, a, &now, &err);
	return NULL;
}

static void look_into(const char *tree)
{
	root = fixture_text(tree);
	in_a_thread(look, NULL);
	assert_int_equal(result, 0);
}

static void begin_namespaces(void)
{
	if (!may_make_namespaces)
		skip();
	where = dir;
	opened = closed = 0;
	calls = (struct netns_calls) { true, lo_is_the_vf, no_sysfs, close_inside };
}

static const struct ip_addr *address(uint32_t v4)
{
	uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

	for (int i = 0; i < 4; i++)
		mapped[12 + i] = (uint8_t)(v4 >> (24 - 8 * i));
	for (size_t i = 0; i < now.n_addrs; i++) {
		if (!memcmp(now.addrs[i].addr, mapped, sizeof(mapped)))
			return &now.addrs[i];
	}
	return NULL;
}

static void finds_a_vf_in_its_namespace_with_its_addresses(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a090807");
	look_into(DRIVER RDMA ETHERNET);
	assert_int_equal(now.seen, VF_SEEN_POD);
	assert_null(now.why);
	assert_string_equal(now.netns, "new");
	assert_string_equal(now.netdev, "lo");
	assert_int_equal(now.mtu, 65536);
	assert_string_equal(now.rdma, "mlx5_4");
	assert_true(now.addrs_known);
	assert_non_null(address(0x0a090807));
	assert_int_equal(address(0x0a090807)->prefix, 96 + 24);
	assert_string_equal(address(0x0a090807)->netdev, "lo");
}

static void the_newest_namespace_is_looked_into_first(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("old", "0a000001");
	usleep(50000); /* files' times are coarse */
	namespace("new", "0a000002");
	look_into(DRIVER RDMA ETHERNET);
	assert_string_equal(now.netns, "new");
	assert_non_null(address(0x0a000002));
	assert_null(address(0x0a000001));
}

static void our_own_namespace_and_files_that_are_none_are_left_out(void **state)
{
	_cleanup_close_ int fd = -1;

	(void)state;
	begin_namespaces();
	namespace("old", "0a000001");
	fd = open(path_of("own"), O_RDONLY | O_CREAT | O_CLOEXEC, 0444);
	assert_int_equal(mount("/proc/self/ns/net", path_of("own"), NULL, MS_BIND, NULL), 0);
	assert_int_equal(close(open(path_of("plain"), O_RDONLY | O_CREAT | O_CLOEXEC, 0444)), 0);
	assert_int_equal(mkfifo(path_of("fifo"), 0644), 0);
	assert_int_equal(mkdir(path_of("folder"), 0755), 0);
	assert_int_equal(symlink("nowhere", path_of("dangling")), 0);
	look_into(DRIVER RDMA ETHERNET);
	assert_string_equal(now.netns, "old");
	assert_int_equal(unlink(path_of("dangling")), 0);
}

static void a_vf_that_is_in_no_namespace_is_told(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	calls.function_of = nothing_is_the_vf;
	look_into(DRIVER RDMA ETHERNET);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(strstr(now.why, "in none of the 1 network namespaces"));
	assert_non_null(strstr(now.why, dir));
}

/* Goes away while the first one is looked into. */
static bool other_goes(const char *netdev, struct bdf *ret)
{
	(void)netdev;
	(void)ret;
	umount2(path_of("old"), MNT_DETACH);
	return false;
}

static void a_namespace_that_goes_meanwhile_is_as_if_it_had_never_been(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("old", "0a000001");
	usleep(50000);
	namespace("new", "0a000002");
	calls.function_of = other_goes;
	look_into(DRIVER RDMA ETHERNET);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(strstr(now.why, "in none of the 1 network namespaces"));
}

static void *look_without_rights(void *arg)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (syscall(SYS_capset, &head, none) == 0)
		look(arg);
	return NULL;
}

static void without_the_right_to_enter_the_host_is_what_is_told(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	root = fixture_text(DRIVER RDMA MODE("Y") ETHERNET
			    "f " PORT "/gids/0 = fe80:0000:0000:0000:0000:00ff:fe00:0001\\n\n");
	result = -1;
	in_a_thread(look_without_rights, NULL);
	assert_int_equal(result, 0);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(strstr(now.why, "CAP_SYS_ADMIN"));
	assert_int_equal(now.n_gids, 1);
}

static void an_interface_of_infiniband_is_looked_for_where_there_is_ipoib(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	look_into(DRIVER RDMA INFINIBAND "d sys/module/ib_ipoib\n");
	assert_int_equal(now.seen, VF_SEEN_POD);
	assert_non_null(address(0x0a000002));
}

static void without_ipoib_no_namespace_is_entered_for_it(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	look_into(DRIVER RDMA INFINIBAND);
	assert_int_equal(now.seen, VF_SEEN_HOST);
	assert_null(now.netdev);
}

static void *crowd(void *arg)
{
	_cleanup_close_ int fd = -1;
	struct making *w = arg;

	make(w);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* the namespace's */
	for (uint32_t i = 1; w->ok && i <= NETNS_CROWD_MAX; i++) {
		struct sockaddr_in sin = { .sin_family = AF_INET,
					   .sin_addr.s_addr = htonl(0x0b000000 + i) };
		struct ifreq ifr = { 0 };

		snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "lo:%u", i);
		memcpy(&ifr.ifr_addr, &sin, sizeof(sin));
		w->ok = ioctl(fd, SIOCSIFADDR, &ifr) == 0;
	}
	return NULL;
}

static void a_namespace_with_more_addresses_than_anybody_needs_is_not_read(void **state)
{
	struct making w = { "new", "0a000002", false };

	(void)state;
	begin_namespaces();
	in_a_thread(crowd, &w);
	assert_true(w.ok);
	look_into(DRIVER RDMA ETHERNET);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_false(now.addrs_known);
	assert_non_null(strstr(now.why, "new was not read: it has more than 4096 addresses"));
}

static void a_directory_that_is_not_there_is_told(void **state)
{
	(void)state;
	begin_namespaces();
	where = path_of("nothing");
	look_into(DRIVER RDMA ETHERNET);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(strstr(now.why, "nothing: No such file"));
}

static void namespaces_that_are_not_mounted_here_are_told(void **state)
{
	(void)state;
	begin_namespaces();
	assert_int_equal(close(open(path_of("plain"), O_RDONLY | O_CREAT | O_CLOEXEC, 0444)), 0);
	look_into(DRIVER RDMA ETHERNET);
	assert_non_null(strstr(now.why, "HostToContainer"));
}

#define MOVED                                                                                      \
	DRIVER MODE("N") "f " VF "/infiniband_verbs/uverbs4/ibdev = mlx5_4\\n\n"                   \
			 "f " VF "/infiniband_verbs/uverbs4/dev = 231:196\\n\n"

static void an_rdma_device_that_moved_along_is_read_inside(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	inside = DRIVER RDMA ETHERNET "f " PORT
				      "/gids/3 = 0000:0000:0000:0000:0000:ffff:0a00:0002\\n\n";
	calls.sysfs_open = sysfs_inside;
	look_into(MOVED);
	assert_int_equal(now.seen, VF_SEEN_POD);
	assert_string_equal(now.rdma, "mlx5_4");
	assert_int_equal(now.n_gids, 1);
	assert_int_equal(now.gids[0].index, 3);
	assert_int_equal(opened, 1);
	assert_int_equal(closed, 1);
}

static void where_sysfs_cannot_be_mounted_the_rest_is_known(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	look_into(MOVED);
	assert_int_equal(now.seen, VF_SEEN_OUTSIDE);
	assert_non_null(strstr(now.why, "mount of sysfs: Permission denied"));
	assert_null(now.netns);
	assert_string_equal(now.netdev, "lo");
	assert_true(now.addrs_known);
	assert_non_null(address(0x0a000002));
	assert_string_equal(now.rdma, "mlx5_4");
	assert_string_equal(now.uverbs, "uverbs4");
}

#define RXE(name, guid)                                                                            \
	"f sys/class/infiniband/" name "/parent = lo\\n\n"                                         \
	"f sys/class/infiniband/" name "/node_guid = " guid "\\n\n"

static void a_soft_rdma_device_is_known_by_interface_and_address(void **state)
{
	(void)state;
	begin_namespaces();
	namespace("new", "0a000002");
	look_into(DRIVER MODE("Y") RXE("rxe0", "0200:00ff:fe00:0001") RXE(
		"rxe1",
		"0200:00ff:fe00:0000") "f sys/class/infiniband/rxe1/ports/1/link_layer = Ethernet\\n\n"
				       "f sys/class/infiniband_verbs/uverbs7/ibdev = rxe1\\n\n"
				       "f sys/class/infiniband_verbs/uverbs7/dev = 231:199\\n\n");
	assert_int_equal(now.seen, VF_SEEN_POD);
	assert_string_equal(
		now.rdma,
		"rxe1"); /* the other one is on the loopback interface of some other pod */
	assert_string_equal(now.uverbs, "uverbs7");
	assert_int_equal(now.link, HW_LINK_ETHERNET);
}

static struct {
	int result;
	bool only_lo;
} sysfs;

static int count(void *arg, const char *name)
{
	(void)name;
	++*(int *)arg;
	return 0;
}

static void *look_at_sysfs(void *arg)
{
	struct sysroot *in;
	int n = 0;

	(void)arg;
	sysfs.result = unshare(CLONE_NEWNET) < 0 ? -errno : netns_sysfs_open(&in, &err);
	if (sysfs.result < 0)
		return NULL;
	sysroot_each(in, "sys/class/net", count, &n);
	sysfs.only_lo = n == 1 && sysroot_exists(in, "sys/class/net/lo");
	netns_sysfs_close(in);
	return NULL;
}

static void sysfs_shows_the_namespace_and_the_mount_ends_with_the_look(void **state)
{
	struct stat before, after;

	(void)state;
	begin_namespaces();
	assert_int_equal(stat("/sys", &before), 0);
	in_a_thread(look_at_sysfs, NULL);
	if (sysfs.result < 0 || is_emulated())
		skip(); /* no mounts here */
	assert_true(sysfs.only_lo);
	assert_int_equal(stat("/sys", &after), 0);
	assert_int_equal(after.st_dev, before.st_dev);
}

static void no_interface_here_is_a_pci_functions(void **state)
{
	struct bdf bdf;

	(void)state;
	assert_false(netns_function_of("lo", &bdf));
	assert_false(netns_function_of("no-such-interface-at-all", &bdf));
	assert_int_equal(netns_mtu_of("lo"), 65536);
	assert_int_equal(netns_mtu_of("nosuch0"), 0);
}

#define TREE(fn)      cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
#define NAMESPACE(fn) cmocka_unit_test_setup_teardown(fn, set_up_namespaces, tear_down_namespaces)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(tells_all_of_a_vf_that_the_host_has),
		TREE(takes_the_port_that_is_up),
		TREE(a_vf_without_a_driver_is_here_and_has_nothing),
		TREE(a_vf_that_is_gone_is_an_error),
		TREE(a_vf_whose_interface_is_away_keeps_the_tables_of_the_host),
		TREE(of_an_rdma_device_that_moved_away_the_verbs_device_tells_the_name),
		TREE(infiniband_needs_no_interface),
		NAMESPACE(finds_a_vf_in_its_namespace_with_its_addresses),
		NAMESPACE(the_newest_namespace_is_looked_into_first),
		NAMESPACE(our_own_namespace_and_files_that_are_none_are_left_out),
		NAMESPACE(a_vf_that_is_in_no_namespace_is_told),
		NAMESPACE(a_namespace_that_goes_meanwhile_is_as_if_it_had_never_been),
		NAMESPACE(without_the_right_to_enter_the_host_is_what_is_told),
		NAMESPACE(an_interface_of_infiniband_is_looked_for_where_there_is_ipoib),
		NAMESPACE(without_ipoib_no_namespace_is_entered_for_it),
		NAMESPACE(a_namespace_with_more_addresses_than_anybody_needs_is_not_read),
		NAMESPACE(a_directory_that_is_not_there_is_told),
		NAMESPACE(namespaces_that_are_not_mounted_here_are_told),
		NAMESPACE(an_rdma_device_that_moved_along_is_read_inside),
		NAMESPACE(where_sysfs_cannot_be_mounted_the_rest_is_known),
		NAMESPACE(a_soft_rdma_device_is_known_by_interface_and_address),
		NAMESPACE(sysfs_shows_the_namespace_and_the_mount_ends_with_the_look),
		TREE(no_interface_here_is_a_pci_functions),
	};

	return cmocka_run_group_tests(tests, own_mounts, NULL);
}
