/* room: discover */
/* Any bytes as the value of every file of a small machine: the scan ends, with facts or with notes. */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "discover/sysroot.h"
#include "support/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BRIDGE "sys/devices/pci0000:00/0000:00:01.0"
#define PF     "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define VF     "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1"
#define GPU    "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"
#define RDMA   VF "/infiniband/mlx5_1/ports/1"

/* Complete, so that every file has a reader; the input's n-th line goes into the n-th file here. */
static const char *const targets[] = {
	PF "/numa_node",
	PF "/sriov_totalvfs",
	PF "/sriov_offset",
	PF "/current_link_speed",
	PF "/current_link_width",
	VF "/class",
	VF "/numa_node",
	RDMA "/state",
	RDMA "/rate",
	RDMA "/link_layer",
	RDMA "/gids/0",
	RDMA "/pkeys/0",
	VF "/infiniband_verbs/uverbs1/dev",
	GPU "/vendor",
	BRIDGE "/config",
	"proc/net/route",
	"proc/cpuinfo",
	"proc/driver/nvidia/gpus/0000:02:00.0/information",
	"sys/devices/system/node/node0/distance",
	PF "/sriov/0/config",
	PF "/sriov/0/max_tx_rate",
};

#define IDS(path, vendor, device, class)                                                                     \
	"f " path "/vendor = " vendor "\\n\nf " path "/device = " device "\\n\nf " path                      \
	"/class = " class "\\n\n"
static const char machine[] =
	"l sys/bus/pci/devices/0000:00:01.0 -> ../../../devices/pci0000:00/0000:00:01.0\n"
	"l sys/bus/pci/devices/0000:01:00.0 -> ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0\n"
	"l sys/bus/pci/devices/0000:01:00.1 -> ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.1\n"
	"l sys/bus/pci/devices/0000:02:00.0 -> ../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0\n"
	"l " VF "/physfn -> ../0000:01:00.0\n"
	"l " PF "/virtfn0 -> ../0000:01:00.1\n"
	"l sys/class/infiniband/mlx5_1 -> "
	"../../devices/pci0000:00/0000:00:01.0/0000:01:00.1/infiniband/mlx5_1\n" IDS(
		PF, "0x15b3", "0x1021", "0x020000") IDS(VF, "0x15b3", "0x101e", "0x020000")
		IDS(GPU, "0x10de", "0x2330", "0x030200") IDS(BRIDGE, "0x8086", "0x352a", "0x060400");

static void put(int top, const char *path, const uint8_t *data, size_t size)
{
	_cleanup_free_ char *dir = xstrdup(path);
	_cleanup_close_ int fd = -1;

	for (char *p = dir; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdirat(top, dir, 0755);
		*p = '/';
	}
	fd = openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
}

/* Lines in turn; an input of one line is the value of all. */
static void put_all(const struct sysroot *root, const uint8_t *data, size_t size)
{
	_cleanup_close_ int top = open(sysroot_path(root), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		const uint8_t *end = size > at ? memchr(data + at, '\n', size - at) : NULL;
		size_t n = end ? (size_t)(end - data) - at : size - at;

		put(top, targets[i], data + at, n);
		at = end && at + n + 1 < size ? at + n + 1 : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sysroot *root = fixture_text(machine);
	struct gid_entry gids[GID_TABLE_MAX];
	struct function_now now;
	struct hw_inventory *inv = NULL;
	uint16_t pkeys[4];
	size_t n;

	put_all(root, data, size);
	inv = fixture_discover(root);
	assert(hw_inventory_same(inv, inv));
	discover_gids(root, "mlx5_1", 1, gids, &n, NULL);
	discover_pkeys(root, "mlx5_1", 1, pkeys, ARRAY_LEN(pkeys));
	assert(!discover_function_now(root, (struct bdf) { 0, 1, 0, 1 }, &now, NULL));
	hw_inventory_free(inv);
	fixture_close(root);
	return 0;
}
