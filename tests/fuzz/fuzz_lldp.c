/* room: discover hosttree */
/*
 * Any bytes as what lldpcli wrote: entries, or one sentence; what is read may be shown on a
 * terminal, a NIC has one neighbour at most, and a capture of it says the same.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "discover/lldp.h"
#include "hosttree/hosttree.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEVICES	     "sys/bus/pci/devices"
#define FILE_AT	     "run/railmate/lldp.json"
#define NAME_LEN_MAX 255

#define NIC(bdf, name, carrier)                                                                    \
	"f " DEVICES "/" bdf "/vendor = 0x15b3\\n\nf " DEVICES "/" bdf "/device = 0x1021\\n\n"     \
	"f " DEVICES "/" bdf "/class = 0x020000\\n\nf " DEVICES "/" bdf "/sriov_totalvfs = 1\\n\n" \
	"f " DEVICES "/" bdf "/net/" name "/carrier = " carrier "\\n\n"                            \
	"l " DEVICES "/" bdf "/net/" name "/device -> ../../../" bdf "\n"                          \
	"l sys/class/net/" name " -> ../../bus/pci/devices/" bdf "/net/" name "\n"

static const char machine[] =
	NIC("0000:01:00.0", "eth0", "1") NIC("0000:02:00.0", "eth1", "0") "f " FILE_AT " = \n";

/* The machine is made once; the file is written anew for each input. */
static struct {
	struct sysroot *root;
	int file;
} kept = { NULL, -1 };

static void remove_machine(void)
{
	fixture_close(kept.root);
	closep(&kept.file);
}

static void make_machine(void)
{
	kept.root = fixture_text(machine);
	kept.file = sysroot_openat(kept.root, O_RDWR, FILE_AT);
	assert(kept.file >= 0);
	atexit(remove_machine);
}

static void check_text(const char *text)
{
	size_t len = strlen(text);

	assert(len > 0 && len <= NAME_LEN_MAX);
	for (size_t i = 0; i < len; i++)
		assert(text[i] >= ' ' && text[i] <= '~');
}

static const struct hw_neighbor *neighbor_at(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;
	int pci;

	assert(!bdf_parse(address, &bdf));
	pci = hw_find_pci(inv, bdf);
	assert(pci >= 0);
	return hw_find_neighbor(inv, pci);
}

/* The capture of a machine has the same neighbours. */
static void check_capture(const struct hw_inventory *inv)
{
	static const char *const nics[] = { "0000:01:00.0", "0000:02:00.0" };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct hw_inventory *again;
	struct sysroot *copy;

	assert(!hosttree_capture(kept.root, false, &text, NULL));
	copy = fixture_text_n(strbuf_str(&text), text.len);
	again = fixture_discover(copy);
	for (size_t i = 0; i < ARRAY_LEN(nics); i++) {
		const struct hw_neighbor *was = neighbor_at(inv, nics[i]);
		const struct hw_neighbor *is = neighbor_at(again, nics[i]);

		assert(!was == !is);
		assert(!was || (str_eq(is->name, was->name) && str_eq(is->port, was->port)));
	}
	hw_inventory_free(again);
	fixture_close(copy);
}

static void check_machine(void)
{
	struct hw_inventory *inv = fixture_discover(kept.root);

	assert(inv->n_neighbor <= 2);
	for (size_t i = 0; i < inv->n_neighbor; i++) {
		check_text(inv->neighbor[i].name);
		check_text(inv->neighbor[i].port);
	}
	/* A tree takes a thousand times as long as the text. */
	if (inv->n_neighbor)
		check_capture(inv);
	hw_inventory_free(inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *arena = arena_new(1024);
	struct lldp_entry *entries;
	struct err err = { 0 };
	size_t n = 0;
	bool ours = false;

	if (!kept.root)
		make_machine();
	assert(pwrite(kept.file, data, size, 0) == (ssize_t)size);
	assert(!ftruncate(kept.file, (off_t)size));
	if (lldp_read(kept.root, arena, &entries, &n, &err) < 0) {
		assert(err.code && *err.msg && !strchr(err.msg, '\n'));
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		check_text(entries[i].name ? entries[i].name : "-");
		check_text(entries[i].port ? entries[i].port : "-");
		ours |= str_starts(entries[i].interface, "eth");
	}
	if (ours)
		check_machine();
	return 0;
}
