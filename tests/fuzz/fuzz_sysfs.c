/* room: discover devstate */
/* Any bytes as the value of every file of a small machine: the scan ends, with facts or with notes.
 */
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
#include "devstate/devstate.h"
#include "discover/discover.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

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

#define IDS(path, vendor, device, class)                                                           \
	"f " path "/vendor = " vendor "\\n\nf " path "/device = " device "\\n\nf " path            \
	"/class = " class "\\n\n"
static const char machine[] =
	"l sys/bus/pci/devices/0000:00:01.0 -> ../../../devices/pci0000:00/0000:00:01.0\n"
	"l sys/bus/pci/devices/0000:01:00.0 -> ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0\n"
	"l sys/bus/pci/devices/0000:01:00.1 -> ../../../devices/pci0000:00/0000:00:01.0/0000:01:00.1\n"
	"l sys/bus/pci/devices/0000:02:00.0 -> ../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0\n"
	"l " VF "/physfn -> ../0000:01:00.0\n"
	"l " PF "/virtfn0 -> ../0000:01:00.1\n"
	"l sys/class/infiniband/mlx5_1 -> ../../devices/pci0000:00/0000:00:01.0/0000:01:00.1/infiniband/mlx5_1\n" IDS(
		PF, "0x15b3", "0x1021", "0x020000") IDS(VF, "0x15b3", "0x101e", "0x020000")
		IDS(GPU, "0x10de", "0x2330", "0x030200")
			IDS(BRIDGE, "0x8086", "0x352a", "0x060400");

/* The machine is made once, and a file is written when its value changes: to make it anew took 99 %
 * of the time. */
static struct {
	struct sysroot *root;
	int files[ARRAY_LEN(targets)];
	struct strbuf values[ARRAY_LEN(targets)];
} kept;

static int create(int top, const char *path)
{
	_cleanup_free_ char *dir = xstrdup(path);
	int fd;

	for (char *p = dir; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdirat(top, dir, 0755);
		*p = '/';
	}
	fd = openat(top, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert(fd >= 0);
	return fd;
}

static void remove_machine(void)
{
	fixture_close(kept.root);
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		close(kept.files[i]);
		strbuf_done(&kept.values[i]);
	}
}

static void make_machine(void)
{
	_cleanup_close_ int top = -1;

	kept.root = fixture_text(machine);
	top = open(sysroot_path(kept.root), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(top >= 0);
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		kept.files[i] = create(top, targets[i]);
	atexit(remove_machine);
}

static void put(size_t target, const uint8_t *data, size_t size)
{
	struct strbuf *value = &kept.values[target];

	if (value->len == size && !memcmp(strbuf_str(value), data, size))
		return;
	assert(pwrite(kept.files[target], data, size, 0) == (ssize_t)size);
	assert(value->len <= size || !ftruncate(kept.files[target], (off_t)size));
	value->len = 0;
	strbuf_add(value, (const char *)data, size);
}

/* Lines in turn; an input of one line is the value of all. */
static void put_all(const uint8_t *data, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		const uint8_t *end = size > at ? memchr(data + at, '\n', size - at) : NULL;
		size_t n = end ? (size_t)(end - data) - at : size - at;

		put(i, data + at, n);
		at = end && at + n + 1 < size ? at + n + 1 : 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gid_entry gids[GID_TABLE_MAX];
	struct function_now now;
	struct hw_inventory *inv = NULL;
	uint16_t pkeys[4];
	size_t n;

	if (!kept.root)
		make_machine();
	put_all(data, size);
	inv = fixture_discover(kept.root);
	assert(hw_inventory_same(inv, inv));
	devstate_gids(kept.root, "mlx5_1", 1, gids, &n, NULL);
	devstate_pkeys(kept.root, "mlx5_1", 1, pkeys, ARRAY_LEN(pkeys));
	assert(!devstate_function(kept.root, (struct bdf) { 0, 1, 0, 1 }, &now, NULL));
	hw_inventory_free(inv);
	return 0;
}
