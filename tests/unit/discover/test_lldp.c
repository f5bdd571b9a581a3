/* What lldpcli writes: which neighbour a NIC has, and what of a text nobody may rely on. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/hosttree.h"
#include "support/fixture.h"
#include "sysroot/sysroot-internal.h"

#define DEVICES "sys/bus/pci/devices"
#define FILE_AT "run/railmate/lldp.json"

/* lldpcli 1.0.16 -f json0, less what is not read (docs/design/lldp.md). */
#define MAC_ID "\"id\":[{\"type\":\"mac\",\"value\":\"42:7f:c3:72:06:c6\"}]"
#define HEARD(interface, name, port)                                                               \
	"{\"name\":\"" interface "\",\"via\":\"LLDP\",\"chassis\":[{" MAC_ID "," name              \
	"}],\"port\":[{" port "}]}"
#define NAME(text)   "\"name\":[{\"value\":\"" text "\"}]"
#define PORT(text)   "\"id\":[{\"type\":\"ifname\",\"value\":\"" text "\"}]"
#define ALL(entries) "{\"lldp\":[{\"interface\":[" entries "]}]}"

static void put_file(const struct sysroot *root, const char *text)
{
	_cleanup_close_ int fd = -1;

	assert_true(!mkdirat(root->fd, "run", 0755) || errno == EEXIST);
	assert_true(!mkdirat(root->fd, "run/railmate", 0755) || errno == EEXIST);
	fd = openat(root->fd, FILE_AT, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* A PF with a VF, and a second PF without a link. */
static struct sysroot *machine(const char *text)
{
	static const char *const nics[][2] = { { "0000:01:00.0", "eth0" },
					       { "0000:02:00.0", "eth1" } };
	_cleanup_strbuf_ struct strbuf tree = STRBUF_INIT;
	struct sysroot *root;

	for (size_t i = 0; i < ARRAY_LEN(nics); i++) {
		strbuf_printf(&tree, "f " DEVICES "/%s/vendor = 0x15b3\\n\n", nics[i][0]);
		strbuf_printf(&tree, "f " DEVICES "/%s/device = 0x1021\\n\n", nics[i][0]);
		strbuf_printf(&tree, "f " DEVICES "/%s/class = 0x020000\\n\n", nics[i][0]);
		strbuf_printf(&tree, "f " DEVICES "/%s/sriov_totalvfs = 1\\n\n", nics[i][0]);
		strbuf_printf(&tree, "f " DEVICES "/%s/net/%s/carrier = %d\\n\n", nics[i][0],
			      nics[i][1], i == 0);
		strbuf_printf(&tree, "l " DEVICES "/%s/net/%s/device -> ../../../%s\n", nics[i][0],
			      nics[i][1], nics[i][0]);
		strbuf_printf(&tree, "l sys/class/net/%s -> ../../bus/pci/devices/%s/net/%s\n",
			      nics[i][1], nics[i][0], nics[i][1]);
	}
	strbuf_puts(&tree, "f " DEVICES "/0000:01:00.1/vendor = 0x15b3\\n\n"
			   "f " DEVICES "/0000:01:00.1/device = 0x101e\\n\n"
			   "f " DEVICES "/0000:01:00.1/class = 0x020000\\n\n"
			   "d " DEVICES "/0000:01:00.1/net/eth2\n"
			   "l " DEVICES "/0000:01:00.1/physfn -> ../0000:01:00.0\n"
			   "l " DEVICES "/0000:01:00.0/virtfn0 -> ../0000:01:00.1\n");
	root = fixture_text(strbuf_str(&tree));
	if (text)
		put_file(root, text);
	return root;
}

/* "fab-1 swp1, -": of each PF. */
static char *said(const struct hw_inventory *inv)
{
	struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_neighbor *n = hw_find_neighbor(inv, (int)i);

		if (inv->pci[i].physfn >= 0) {
			assert_ptr_equal(n, hw_find_neighbor(inv, inv->pci[i].physfn));
			continue;
		}
		strbuf_puts(&out, out.len ? ", " : "");
		strbuf_printf(&out, n ? "%s %s" : "-", n ? n->name : "", n ? n->port : "");
	}
	return strbuf_steal(&out);
}

static void expect(const struct hw_inventory *inv, const char *wanted, const char *note)
{
	_cleanup_free_ char *got = said(inv);

	assert_string_equal(got, wanted);
	assert_int_equal(inv->n_notes, note != NULL);
	if (note)
		assert_true(str_starts(inv->notes[0], note));
}

static void a_nic_has_the_neighbour_that_its_interface_heard(void **state)
{
	static const struct {
		const char *text, *wanted, *note;
	} rows[] = {
		{ NULL, "-, -", NULL },
		{ ALL(HEARD("eth0", NAME("fab-1"), PORT("swp1")) "," HEARD("eth1", NAME("fab-2"),
									   PORT("swp9"))),
		  "fab-1 swp1, fab-2 swp9", NULL },
		/* Neither VFs nor what is no NIC of the node. */
		{ ALL(HEARD("eth2", NAME("fab-1"), PORT("swp1")) "," HEARD("lo", NAME("fab-1"),
									   PORT("swp1"))),
		  "-, -", NULL },
		/* Heard twice, and two that are heard at once. */
		{ ALL(HEARD("eth0", NAME("fab-1"), PORT("swp1")) "," HEARD("eth0", NAME("fab-1"),
									   PORT("swp1"))),
		  "fab-1 swp1, -", NULL },
		{ ALL(HEARD("eth0", NAME("fab-1"), PORT("swp1")) "," HEARD("eth0", NAME("fab-1"),
									   PORT("swp2"))),
		  "-, -", FILE_AT ": eth0 has 2 neighbours" },
		/* A switch without a name, a port that is a MAC address. */
		{ ALL(HEARD("eth0", "\"ttl\":[]", PORT("swp1"))), "42:7f:c3:72:06:c6 swp1, -",
		  NULL },
		{ ALL(HEARD("eth0", NAME("fab-1"),
			    MAC_ID ",\"descr\":[{\"value\":\"Ethernet1/1\"}]")),
		  "fab-1 Ethernet1/1, -", NULL },
		{ ALL(HEARD("eth0", NAME("fab-1"), MAC_ID)), "fab-1 42:7f:c3:72:06:c6, -", NULL },
		/* Nothing was heard (lldpcli writes exactly this). */
		{ "{\n  \"lldp\": [\n    {\n      \n    }\n  ]\n}\n", "-, -", NULL },
		{ "{\"lldp\":[{\"interface\":[{\"name\":\"eth0\",\"via\":\"CDPv2\"}]}]}", "-, -",
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sysroot *root = machine(rows[i].text);
		struct hw_inventory *inv = fixture_discover(root);

		expect(inv, rows[i].wanted, rows[i].note);
		hw_inventory_free(inv);
		fixture_close(root);
	}
}

static void hostile_text_is_a_note(void **state)
{
	static const struct {
		const char *text, *note;
	} rows[] = {
		{ "", FILE_AT " is not used: lldp.json:" },
		{ "{\"lldp\":[", FILE_AT " is not used: lldp.json:1: " },
		{ "[]",
		  FILE_AT " is not used: is not what lldpcli -f json0 show neighbors writes" },
		/* -f json */
		{ "{\"lldp\":{\"interface\":{\"eth0\":{\"via\":\"LLDP\"}}}}",
		  FILE_AT " is not used: is not what lldpcli -f json0" },
		{ ALL(HEARD("eth0", NAME("fab\\u001b[2J"), PORT("swp1"))),
		  FILE_AT ": the neighbour of eth0 has no name or port of plain text" },
		{ ALL(HEARD("eth0", NAME("f\\u202eab"), PORT("swp1"))),
		  FILE_AT ": the neighbour of eth0 has no name" },
		{ ALL(HEARD("eth0", NAME(""), PORT("swp1"))),
		  FILE_AT ": the neighbour of eth0 has no name" },
		{ ALL(HEARD("eth0", NAME("fab"), PORT("\\n"))),
		  FILE_AT ": the neighbour of eth0 has no name" },
		{ ALL("{\"name\":\"eth0\",\"via\":\"LLDP\",\"chassis\":7,\"port\":[[]]}"),
		  FILE_AT ": the neighbour of eth0 has no name" },
		{ "{\"lldp\":[7,{\"interface\":{}},{\"interface\":[7,null,[],{}]}]}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sysroot *root = machine(rows[i].text);
		struct hw_inventory *inv = fixture_discover(root);

		expect(inv, "-, -", rows[i].note);
		hw_inventory_free(inv);
		fixture_close(root);
	}
}

static void long_names_and_crowds_are_not_taken(void **state)
{
	struct sysroot *root = machine(NULL);
	struct hw_inventory *inv;
	struct strbuf text = STRBUF_INIT;

	(void)state;
	strbuf_puts(&text, "{\"lldp\":[{\"interface\":[");
	for (size_t i = 0; i < 5000; i++)
		strbuf_printf(&text, "%s{\"name\":\"eth0\",\"via\":\"LLDP\"}", i ? "," : "");
	strbuf_puts(&text, "]}]}");
	put_file(root, text.s);
	inv = fixture_discover(root);
	expect(inv, "-, -", FILE_AT " is not used: has more than 4096 neighbours");
	hw_inventory_free(inv);

	while (text.len <= 1 << 20)
		strbuf_puts(&text, "                                                            ");
	put_file(root, text.s);
	inv = fixture_discover(root);
	expect(inv, "-, -", FILE_AT " is not used: is larger than 1048576 bytes");
	hw_inventory_free(inv);

	strbuf_done(&text);
	strbuf_printf(&text, ALL(HEARD("eth0", NAME("%0256d"), PORT("swp1"))), 0);
	put_file(root, text.s);
	inv = fixture_discover(root);
	expect(inv, "-, -", FILE_AT ": the neighbour of eth0 has no name");
	hw_inventory_free(inv);
	strbuf_done(&text);
	fixture_close(root);
}

static void expect_refused(const struct sysroot *root, const char *note)
{
	struct hw_inventory *inv = fixture_discover(root);

	expect(inv, "-, -", note);
	hw_inventory_free(inv);
}

/* Of the live machine: who may write it says where the NICs are. */
static void a_file_of_others_is_not_used(void **state)
{
	static const mode_t modes[] = { 0664, 0646 };
	struct sysroot *root = machine(ALL(HEARD("eth0", NAME("fab-1"), PORT("swp1"))));
	struct hw_inventory *inv;

	(void)state;
	root->live = true;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(fchmodat(root->fd, FILE_AT, modes[i], 0), 0);
		expect_refused(root, FILE_AT " is not used: belongs to user ");
	}
	assert_int_equal(fchmodat(root->fd, FILE_AT, 0644, 0), 0);
	if (geteuid() == 0) {
		inv = fixture_discover(root);
		expect(inv, "fab-1 swp1, -", NULL);
		hw_inventory_free(inv);
		assert_int_equal(fchownat(root->fd, FILE_AT, 1, 0, 0), 0);
	}
	expect_refused(root, FILE_AT " is not used: belongs to user ");
	root->live = false;
	assert_int_equal(unlinkat(root->fd, FILE_AT, 0), 0);
	assert_int_equal(mkfifoat(root->fd, FILE_AT, 0644), 0);
	expect_refused(root, FILE_AT " is not used: is not a regular file");
	fixture_close(root);
}

static struct hw_inventory *again(const struct sysroot *root, struct hw_inventory *before)
{
	struct hw_inventory *inv = NULL;

	assert_int_equal(discover_host(root, NULL, 0, before, &inv, NULL), 0);
	hw_inventory_free(before);
	return inv;
}

/* eth0 has a link, eth1 has none. */
static void what_was_known_stays_while_a_link_or_the_file_is_lost(void **state)
{
	struct sysroot *root = machine(ALL(HEARD("eth0", NAME("fab-1"), PORT("swp1")) "," HEARD(
		"eth1", NAME("fab-2"), PORT("swp9"))));
	struct hw_inventory *inv = fixture_discover(root);

	(void)state;
	put_file(root, "{\"lldp\":[{\"inter");
	inv = again(root, inv);
	expect(inv, "fab-1 swp1, fab-2 swp9", FILE_AT " is not used: ");
	put_file(root, ALL(""));
	inv = again(root, inv);
	expect(inv, "-, fab-2 swp9", NULL);
	put_file(root, ALL(HEARD("eth1", NAME("fab-3"), PORT("swp1"))));
	inv = again(root, inv);
	expect(inv, "-, fab-3 swp1", NULL);
	assert_int_equal(unlinkat(root->fd, FILE_AT, 0), 0);
	inv = again(root, inv);
	expect(inv, "-, -", NULL);
	hw_inventory_free(inv);
	fixture_close(root);
}

static char *captured(const struct sysroot *root, bool scrub)
{
	struct strbuf text = STRBUF_INIT;

	assert_int_equal(hosttree_capture(root, scrub, &text, NULL), 0);
	return strbuf_steal(&text);
}

/* A scrubbed one has none: they name switches. */
static void a_capture_has_the_neighbours_of_nics(void **state)
{
	struct sysroot *root = machine(ALL(HEARD("eth0", NAME("fab-10"), PORT("swp1")) "," HEARD(
		"eth1", NAME("fab-9"), PORT("swp1")) "," HEARD("eno9", NAME("aisle-7"),
							       PORT("swp1"))));

	_cleanup_free_ char *text = captured(root, false), *scrubbed = captured(root, true);
	struct sysroot *copy = fixture_text(text);
	struct hw_inventory *inv = fixture_discover(copy);

	(void)state;
	expect(inv, "fab-10 swp1, fab-9 swp1", NULL);
	assert_null(strstr(scrubbed, "fab-"));
	hw_inventory_free(inv);
	fixture_close(copy);
	fixture_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nic_has_the_neighbour_that_its_interface_heard),
		cmocka_unit_test(hostile_text_is_a_note),
		cmocka_unit_test(long_names_and_crowds_are_not_taken),
		cmocka_unit_test(a_file_of_others_is_not_used),
		cmocka_unit_test(a_capture_has_the_neighbours_of_nics),
		cmocka_unit_test(what_was_known_stays_while_a_link_or_the_file_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
