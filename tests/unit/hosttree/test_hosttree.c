/* Machines as text, there and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/hosttree.h"
#include "support/bigtree.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

static void unpacks_every_kind_of_line(void **state)
{
	struct sysroot *root = fixture_text(
		"d empty/dir\nf a/text = one\\ntwo\\\\\\x09three = four\\n\nx a/bin = 00ff7f0a\n"
		"l link -> ../a/text\nf a/none =\nf with\\x20blank = é\nf a/last = no newline");
	char buf[64];

	(void)state;
	assert_true(sysroot_exists(root, "empty/dir/."));
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/text"), 21);
	assert_string_equal(buf, "one\ntwo\\\tthree = four");
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/bin"), 3);
	assert_memory_equal(buf, "\x00\xff\x7f", 3);
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "link"), 0);
	assert_string_equal(buf, "text");
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/none"), 0);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "with blank"), 2);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/last"), 10);
	fixture_close(root);
}

static void refuse(const char *text, size_t len, const char *line, const char *word)
{
	_cleanup_free_ char *folder = fixture_folder();
	struct err err = { 0 };

	assert_true(hosttree_unpack(text, len, folder, &err) < 0);
	assert_non_null(strstr(err.msg, line));
	assert_non_null(strstr(err.msg, word));
	assert_int_equal(rmdir(folder), 0); /* nothing was written */
}

static void refuses_what_cannot_be_parsed_or_leads_out(void **state)
{
	static const struct {
		const char *text, *line, *word;
	} cases[] = {
		{ "f ok = 1\nf /etc/passwd = x\n", "line 2", "/etc/passwd" },
		{ "f a/../../b = x\n", "line 1", "a/../../b" },
		{ "f .. = x\n", "line 1", ".." },
		{ "d ./a\n", "line 1", "plain path" },
		{ "d a//b\n", "line 1", "plain path" },
		{ "d a/\n", "line 1", "plain path" },
		{ "f  = x\n", "line 1", "plain path" },
		{ "f a\\x2f..\\x2f..\\x2fb = x\n", "line 1", "plain path" },
		{ "f a\\x00b = x\n", "line 1", "escape" },
		{ "f a = \\q\n", "line 1", "bad escape" },
		{ "f a = \\x1\n", "line 1", "bad escape" },
		{ "f a = \\\n", "line 1", "bad escape" },
		{ "x a = abc\n", "line 1", "hexadecimal" },
		{ "x a = zz\n", "line 1", "hexadecimal" },
		{ "f a\n", "line 1", "no ' = '" },
		{ "l a = b\n", "line 1", "no ' -> '" },
		{ "l a -> \n", "line 1", "target" },
		{ "q a\n", "line 1", "does not start" },
		{ "d a\n\nd b\n", "line 2", "does not start" },
		{ "f a = \xff\n", "line 1", "UTF-8" },
		{ "f b = 1\nf a = 1\nd b\n", "line 3", "that of line 1" },
		{ "f a/b = 1\nf a = 1\n", "line 1", "that of line 2" },
		{ "l out -> /tmp\nf out/file = 1\n", "line 2", "that of line 1" },
		{ "f in/side/file = 1\nl in -> elsewhere\n", "line 1", "that of line 2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		refuse(cases[i].text, strlen(cases[i].text), cases[i].line, cases[i].word);
	refuse("f a = \0\n", 8, "line 1", "UTF-8");
}

static void refuses_folders_that_are_not_empty_or_not_there(void **state)
{
	struct sysroot *root = fixture_text("d something\n");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hosttree_unpack("d a\n", 4, sysroot_path(root), &err), -ENOTEMPTY);
	assert_false(sysroot_exists(root, "a"));
	assert_int_equal(hosttree_unpack("d a\n", 4, "/nowhere/at/all", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nowhere/at/all"));
	fixture_close(root);
}

static char *capture(const struct sysroot *root, bool scrub)
{
	struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };

	assert_int_equal(hosttree_capture(root, scrub, &text, &err), 0);
	return strbuf_steal(&text);
}

#define DEV "sys/devices/pci0000:00/0000:00:01.0"
static const char machine[] =
	"l sys/bus/pci/devices/0000:00:01.0 -> ../../../devices/pci0000:00/0000:00:01.0\n"
	"l sys/bus/pci/devices/0000:00:02.0 -> ../../../devices/pci0000:00/0000:00:02.0\n"
	"f sys/devices/pci0000:00/0000:00:02.0/class = 0x060400\\n\n"
	"f sys/devices/pci0000:00/0000:00:02.0/vendor = 0x8086\\n\n"
	"f sys/devices/pci0000:00/0000:00:02.0/device = 0x352a\\n\n"
	"f " DEV "/class = 0x020000\\n\n"
	"f " DEV "/vendor = 0x15b3\\n\n"
	"f " DEV "/device = 0x1021\\n\n"
	"f " DEV "/secret_of_no_interest = 1\\n\n"
	"f " DEV "/net/eth0/address = b8:ce:f6:12:34:56\\n\n"
	"f " DEV "/net/eth0/type = 1\\n\n"
	"f " DEV "/net/eth0/carrier = \n"
	"l " DEV "/net/eth0/device -> ../../../0000:00:01.0\n"
	"l sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:01.0/net/eth0\n"
	"l sys/class/net/docker0 -> ../../devices/virtual/net/docker0\nd sys/devices/virtual/net/docker0\n"
	"f " DEV "/infiniband/mlx5_0/node_desc = node17 mlx5_0\\n\n"
	"f " DEV "/infiniband/mlx5_0/node_guid = b8ce:f603:0012:3456\\n\n"
	"f " DEV "/infiniband/mlx5_0/sys_image_guid = b8ce:f603:0012:3456\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/state = 4: ACTIVE\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/0 = fe80:0000:0000:0000:bace:f6ff:fe12:3456\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/1 = fe80:0000:0000:0000:bace:f6ff:fe12:3456\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/2 = 0000:0000:0000:0000:0000:ffff:c0a8:0001\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/3 = 0000:0000:0000:0000:0000:0000:0000:0000\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/4 = 2001:0db8:0000:0000:0000:0000:0000:0001\\n\n"
	"f " DEV "/infiniband/mlx5_0/ports/1/gids/20 = fe80:0000:0000:0000:bace:f6ff:fe12:3456\\n\n"
	"l sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0\n"
	"f sys/devices/virtual/infiniband/rxe0/parent = eth0\\n\n"
	"d sys/devices/system/node/node0\n"
	"f proc/cpuinfo = processor\\x09: 0\\nflags\\x09\\x09: fpu hypervisor\\nserial: 1234\\n\n"
	"f proc/net/route = Iface\\x09Destination\\x09Gateway\\neth0\\x0900000000\\x090100000A\\x090003\\x090\\x090\\x090\\x0900000000\\n"
	"eth0\\x0900A8C0C0\\x0900000000\\x090001\\x090\\x090\\x090\\x0900FFFFFF\\n\n"
	"f proc/sys/kernel/hostname = node17\\n\n"
	"f sys/class/dmi/id/product_name = Box of node17\\n\n"
	"f proc/driver/nvidia/gpus/0000:02:00.0/information = Model: \\x09\\x09 NVIDIA H100\\n"
	"GPU UUID: \\x09 GPU-8d1f5d0e-1111-2222-3333-444455556666\\nDevice Minor: \\x09 0\\n\n";

static void captures_what_discovery_reads_and_nothing_else(void **state)
{
	struct sysroot *root = fixture_text(machine);
	_cleanup_free_ char *text = capture(root, false);

	(void)state;
	assert_non_null(strstr(text, "f " DEV "/net/eth0/address = b8:ce:f6:12:34:56\\n\n"));
	assert_non_null(strstr(text, "f " DEV "/net/eth0/carrier = \n"));
	assert_non_null(strstr(text, "f proc/cpuinfo = flags\\x09\\x09: fpu hypervisor\\n\n"));
	assert_non_null(strstr(
		text, "l sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0\n"));
	assert_non_null(strstr(text, "f sys/devices/virtual/infiniband/rxe0/parent = eth0\\n\n"));
	assert_non_null(strstr(text, "d sys/devices/system/node/node0\n"));
	assert_null(strstr(text, "secret_of_no_interest"));
	assert_null(strstr(text, "hostname"));
	assert_null(strstr(text, "docker0"));
	assert_null(strstr(text, "gids/20"));
	fixture_close(root);
}

/* The rest of those files names VFs by their MACs, and other hosts. */
static void captures_no_more_of_a_file_than_the_line_it_needs(void **state)
{
#define RATE_PF "sys/devices/pci0000:3a/0000:3a:00.0"
	static const char text[] =
		"l sys/bus/pci/devices/0000:3a:00.0 -> ../../../devices/pci0000:3a/0000:3a:00.0\n"
		"f " RATE_PF "/class = 0x020000\\n\n"
		"f " RATE_PF
		"/sriov/0/config = VF         : 0\\nMAC        : b8:ce:f6:12:34:56\\nMaxTxRate  : 500\\nVGT+  : OFF\\n\n"
		"f " RATE_PF "/sriov/1/max_tx_rate = 700\\n\n"
		"f " RATE_PF "/sriov/1/mac = b8:ce:f6:12:34:57\\n\n"
		"f " RATE_PF "/infiniband/mlx5_0/ports/1/state = 4: ACTIVE\\n\n"
		"f " RATE_PF
		"/infiniband/mlx5_0/tc/1/traffic_class = Global tclass=106\\ndst_ip=10.1.2.3,tclass=8\\n\n";
	struct sysroot *root = fixture_text(text);
	_cleanup_free_ char *out = capture(root, false);

	(void)state;
	assert_non_null(strstr(out, "f " RATE_PF "/sriov/0/config = MaxTxRate  : 500\\n\n"));
	assert_non_null(strstr(out, "f " RATE_PF "/sriov/1/max_tx_rate = 700\\n\n"));
	assert_null(strstr(out, "b8:ce"));
	assert_non_null(strstr(out,
			       "f " RATE_PF
			       "/infiniband/mlx5_0/tc/1/traffic_class = Global tclass=106\\n\n"));
	assert_null(strstr(out, "10.1.2.3"));
	fixture_close(root);
}

static void writes_its_lines_sorted(void **state)
{
	struct sysroot *root = fixture_text(machine);
	_cleanup_free_ char *text = capture(root, false);
	char *save = NULL, *last = strtok_r(text, "\n", &save);

	(void)state;
	for (char *line = strtok_r(NULL, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_true(strcmp(last, line) < 0);
		last = line;
	}
	fixture_close(root);
}

static void comes_back_byte_for_byte(void **state)
{
	_cleanup_strbuf_ struct strbuf big = STRBUF_INIT;
	const char *texts[] = { machine, NULL };

	(void)state;
	bigtree_write(2, 5, 3, &big);
	texts[1] = strbuf_str(&big);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct sysroot *a = fixture_text(texts[i]), *b;
		_cleanup_free_ char *once = capture(a, false), *twice = NULL;
		struct hw_inventory *inv_a = fixture_discover(a), *inv_b;

		b = fixture_text(once);
		twice = capture(b, false);
		inv_b = fixture_discover(b);
		assert_string_equal(once, twice);
		assert_true(hw_inventory_same(inv_a, inv_b));
		hw_inventory_free(inv_a);
		hw_inventory_free(inv_b);
		fixture_close(a);
		fixture_close(b);
	}
}

static void scrubs_whatever_names_the_machine(void **state)
{
	static const char *const names[] = { "b8:ce",	 "b8ce",      "bace",
					     "c0a8",	 "2001:0db8", "node17",
					     "8d1f5d0e", "0100000A",  "00A8C0C0" };
	static const char *const made_up[] = {
		"/net/eth0/address = 02:00:00:00:00:01\\n\n",
		"/node_guid = 0200:0000:0000:0001\\n\n",
		"/sys_image_guid = 0200:0000:0000:0001\\n\n", /* equal before, equal after */
		"/gids/0 = fe80:0000:0000:0000:0200:0000:0000:0001\\n\n",
		"/gids/1 = fe80:0000:0000:0000:0200:0000:0000:0001\\n\n",
		"/gids/2 = 0000:0000:0000:0000:0000:ffff:0000:0002\\n\n",
		"/gids/3 = 0000:0000:0000:0000:0000:0000:0000:0000\\n\n",
		"/gids/4 = fd00:0000:0000:0000:0000:0000:0000:0003\\n\n",
		"GPU UUID: \\x09 GPU-00000000-0000-0000-0000-000000000001\\n",
		"product_name = Box of host\\n\n",
		"eth0\\x0900000000\\x0900000000\\x090003",
	};
	struct sysroot *root = fixture_text(machine);
	_cleanup_free_ char *text = capture(root, true), *again = capture(root, true);
	struct hw_inventory *inv;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_null(strstr(text, names[i]));
	for (size_t i = 0; i < ARRAY_LEN(made_up); i++)
		assert_non_null(strstr(text, made_up[i]));
	assert_string_equal(text, again);
	fixture_close(root);
	root = fixture_text(text);
	inv = fixture_discover(root);
	assert_int_equal(inv->n_pci, 2);
	assert_true(inv->pci[0].default_route);
	hw_inventory_free(inv);
	fixture_close(root);
}

/* udev makes names of the MAC, rdma-core of the GUID. */
static void scrubs_names_that_are_made_of_addresses(void **state)
{
	static const char *const made_up[] = {
		DEV "/net/enx020000000001/address = 02:00:00:00:00:01\\n\n",
		"l sys/class/net/enx020000000001 -> ../../devices/pci0000:00/0000:00:01.0/net/enx020000000001\n",
		DEV "/infiniband/rocex0200000000000001/node_guid = 0200:0000:0000:0001\\n\n",
		DEV "/net/enxabc/mtu = 0xb8cef6001122\\n\n",
		"f proc/sys/net/ipv4/conf/all/rp_filter = 2\\n\n",
		"f proc/sys/net/ipv4/conf/enx020000000001/arp_ignore = 1\\n\n",
	};
	struct sysroot *root = fixture_text(
		"l sys/bus/pci/devices/0000:00:01.0 -> ../../../devices/pci0000:00/0000:00:01.0\n"
		"f " DEV "/class = 0x020000\\n\n"
		"l sys/class/net/enxb8cef6001122 -> ../../devices/pci0000:00/0000:00:01.0/net/enxb8cef6001122\n"
		"l " DEV "/net/enxb8cef6001122/device -> ../../../0000:00:01.0\n"
		"f " DEV "/net/enxb8cef6001122/address = b8:ce:f6:00:11:22\\n\n"
		"f " DEV "/net/enxabc/mtu = 0xb8cef6001122\\n\n"
		"f proc/sys/net/ipv4/conf/all/rp_filter = 2\\n\n"
		"f proc/sys/net/ipv4/conf/enxb8cef6001122/arp_ignore = 1\\n\n"
		"f proc/sys/net/ipv4/conf/wg-office/arp_ignore = 1\\n\n"
		"f " DEV "/infiniband/rocexb8cef60300001122/node_guid = b8ce:f603:0000:1122\\n\n");
	_cleanup_free_ char *plain = capture(root, false), *scrubbed = capture(root, true);

	(void)state;
	assert_non_null(strstr(plain, "rocexb8cef60300001122"));
	assert_null(strstr(scrubbed, "xb8cef60300001122"));
	assert_null(strstr(scrubbed, "enxb8ce"));
	assert_null(strstr(plain, "office"));
	for (size_t i = 0; i < ARRAY_LEN(made_up); i++) {
		if (!strstr(scrubbed, made_up[i]))
			fail_msg("no '%s' in:\n%s", made_up[i], scrubbed);
	}
	fixture_close(root);
}

static void leaves_out_the_serial_number_in_config_space(void **state)
{
	struct strbuf text = STRBUF_INIT;
	struct sysroot *root;
	char *out;

	(void)state;
	strbuf_puts(&text, machine);
	strbuf_puts(&text, "x sys/devices/pci0000:00/0000:00:02.0/config = ");
	for (int i = 0; i < 0x100; i++)
		strbuf_puts(&text, "11");
	strbuf_puts(&text,
		    "03000110deadbeefcafef00d22222222000000000000\n"); /* next: 0x100, a ring */
	root = fixture_text(strbuf_str(&text));
	out = capture(root, false);
	assert_non_null(strstr(out, "03000110\n")); /* without the zeros at its end */
	assert_null(strstr(out, "deadbeef"));
	free(out);
	fixture_close(root);
	strbuf_done(&text);
}

#define GPU_DEV "sys/devices/pci0000:00/0000:00:03.0"

/* Of a GPU, ids, the heads of capabilities, and what doctor reads; nothing of what else is there.
 */
static void captures_an_excerpt_of_a_device(void **state)
{
	_cleanup_free_ char *out = NULL, *again = NULL;
	const char *line;
	struct strbuf text = STRBUF_INIT;
	struct sysroot *root, *copy;
	unsigned char bytes[0x120];

	(void)state;
	strbuf_puts(
		&text,
		"l sys/bus/pci/devices/0000:00:03.0 -> ../../../devices/pci0000:00/0000:00:03.0\n"
		"f " GPU_DEV "/class = 0x030200\\n\n"
		"f " GPU_DEV "/vendor = 0x10de\\n\n"
		"f " GPU_DEV "/device = 0x2330\\n\n");
	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes, "\xde\x10\x30\x23\x00\x00\x10", 8);
	bytes[0x34] = 0x40;
	memset(bytes + 0x40, 0x11, 0x34);
	memcpy(bytes + 0x40, "\x10\x78\x02\x00\x02\x80\x00\x00\x3f\x58", 10);
	memcpy(bytes + 0x78, "\x09\x00", 2);
	memcpy(bytes + 0x100, "\x03\x00\x01\x11\xde\xad\xbe\xef", 8);
	memcpy(bytes + 0x110, "\x0f\x00\x01\x00\x20\x00\x00\x80", 8);
	strbuf_puts(&text, "x " GPU_DEV "/config = ");
	for (size_t i = 0; i < sizeof(bytes); i++)
		strbuf_printf(&text, "%02x", bytes[i]);
	strbuf_putc(&text, '\n');
	root = fixture_text(strbuf_str(&text));
	out = capture(root, false);
	assert_null(strstr(out, "eeee"));
	assert_null(strstr(out, "deadbeef"));
	line = strstr(out, "/config = de10302300001000");
	assert_non_null(line);
	line += strlen("/config = ");
	assert_memory_equal(line + 2 * 0x34, "40000000", 8);
	assert_memory_equal(line + 2 * 0x40, "10780200028000003f581111", 24);
	assert_memory_equal(line + 2 * 0x70, "11111111000000000900000000", 26);
	assert_memory_equal(line + 2 * 0x100,
			    "03000111000000000000000000000000"
			    "0f00010020000080",
			    32 + 16);
	copy = fixture_text(out);
	again = capture(copy, false);
	assert_string_equal(again, out);
	fixture_close(root);
	fixture_close(copy);
	strbuf_done(&text);
}

static void of_the_command_line_only_what_matters_is_told(void **state)
{
	struct sysroot *root = fixture_text(

		"f proc/cmdline = root=UUID=5d3c pci=realloc ip=10.0.0.7 iommu=pt password=secret nopci=1\\n\n"
		"f proc/driver/nvidia/params = EnableMSI: 1\\nExcludedGpus: \"GPU-5d3c\"\\nNvLinkDisable: 0\\n\n");
	_cleanup_free_ char *plain = capture(root, false), *scrubbed = capture(root, true);

	(void)state;
	assert_non_null(strstr(plain, "root=UUID=5d3c"));
	assert_non_null(strstr(scrubbed, "f proc/cmdline = pci=realloc iommu=pt\\n\n"));
	assert_non_null(strstr(plain, "GPU-5d3c"));
	assert_non_null(strstr(scrubbed, "params = EnableMSI: 1\\nNvLinkDisable: 0\\n\n"));
	fixture_close(root);
}

static void captures_an_empty_root_as_nothing(void **state)
{
	struct sysroot *root = fixture_text("");
	_cleanup_free_ char *text = capture(root, true);

	(void)state;
	assert_string_equal(text, "");
	fixture_close(root);
}

/* Links of a machine that lies must not make the capture read elsewhere, or run for ever. */
static void captures_machines_that_lie(void **state)
{
	struct sysroot *root =
		fixture_text("l sys/bus/pci/devices/0000:00:01.0 -> ../../../../../../../..\n"
			     "l sys/bus/pci/devices/0000:00:02.0 -> 0000:00:02.0\n"
			     "l sys/bus/pci/devices/0000:00:03.0 -> /etc\n"
			     "l sys/class/infiniband/x -> x\n");
	_cleanup_free_ char *text = capture(root, false);
	_cleanup_free_ char *again = NULL;
	struct sysroot *copy = fixture_text(text);

	(void)state;
	again = capture(copy, false);
	assert_string_equal(text, again);
	assert_non_null(strstr(text, "0000:00:03.0 -> /etc\n"));
	fixture_close(root);
	fixture_close(copy);
}

static void captures_the_live_machine(void **state)
{
	struct sysroot *live = NULL, *copy;
	_cleanup_free_ char *text = NULL, *again = NULL;

	(void)state;
	assert_int_equal(sysroot_open("/", &live, NULL), 0);
	text = capture(live, false);
	copy = fixture_text(text);
	again = capture(copy, false);
	assert_string_equal(text, again);
	fixture_close(copy);
	sysroot_close(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unpacks_every_kind_of_line),
		cmocka_unit_test(refuses_what_cannot_be_parsed_or_leads_out),
		cmocka_unit_test(refuses_folders_that_are_not_empty_or_not_there),
		cmocka_unit_test(captures_what_discovery_reads_and_nothing_else),
		cmocka_unit_test(captures_no_more_of_a_file_than_the_line_it_needs),
		cmocka_unit_test(writes_its_lines_sorted),
		cmocka_unit_test(comes_back_byte_for_byte),
		cmocka_unit_test(scrubs_whatever_names_the_machine),
		cmocka_unit_test(scrubs_names_that_are_made_of_addresses),
		cmocka_unit_test(leaves_out_the_serial_number_in_config_space),
		cmocka_unit_test(captures_an_excerpt_of_a_device),
		cmocka_unit_test(of_the_command_line_only_what_matters_is_told),
		cmocka_unit_test(captures_an_empty_root_as_nothing),
		cmocka_unit_test(captures_machines_that_lie),
		cmocka_unit_test(captures_the_live_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
