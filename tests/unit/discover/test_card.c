/* Data Direct: which function does the transfers of which NIC, and that VPD is read once. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/hosttree.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

/* --- slow cards --- */

/*
 * read() of this program. While a test wants it so, those of a VPD wait for each other and for the
 * scan to have come as far as the routes: what is read one after the other never gets there.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int meet, met; /* VPDs; 0: none has to wait */
	bool routes;
	bool fail_late; /* a VPD, behind what was read first */
} slow = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

#define GIVE_UP_S 60

static bool is_read(int fd, const char *end)
{
	char link[64], path[512];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	return n >= (ssize_t)strlen(end) && !strcmp(path + n - strlen(end), end);
}

static bool others_came(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += GIVE_UP_S;
	while (slow.met < slow.meet || !slow.routes) {
		if (pthread_cond_timedwait(&slow.moved, &slow.lock, &until))
			return false;
	}
	return true;
}

ssize_t read(int fd, void *buf, size_t n)
{
	bool fails = false;

	if (is_read(fd, "/vpd")) {
		pthread_mutex_lock(&slow.lock);
		slow.met++;
		pthread_cond_broadcast(&slow.moved);
		fails = (slow.fail_late && lseek(fd, 0, SEEK_CUR) > 0) ||
			(slow.meet && !others_came());
		pthread_mutex_unlock(&slow.lock);
	} else if (is_read(fd, "/proc/net/route")) {
		pthread_mutex_lock(&slow.lock);
		slow.routes = true;
		pthread_cond_broadcast(&slow.moved);
		pthread_mutex_unlock(&slow.lock);
	}
	if (!fails)
		return syscall(SYS_read, fd, buf, n);
	errno = EIO;
	return -1;
}

#define DEVICES "sys/bus/pci/devices"
#define NIC	"0000:03:00.0"
#define VF	"0000:03:00.1"
#define DIRECT	"0006:03:00.0"
#define SECOND	"0016:03:00.0"

static void put_function(struct strbuf *out, const char *addr, const char *device,
			 const char *class)
{
	strbuf_printf(out, "f " DEVICES "/%s/vendor = 0x15b3\\n\nf " DEVICES "/%s/device = %s\\n\n",
		      addr, addr, device);
	strbuf_printf(out, "f " DEVICES "/%s/class = %s\\n\n", addr, class);
}

/* "V3=…;VU=…": the keywords of a whole VPD; '!' in it: one whose part for writing is cut. */
static void put_vpd(struct strbuf *out, const char *addr, const char *keywords)
{
	_cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
	_cleanup_free_ char *text = xstrdup(keywords);
	char *save = NULL;

	for (char *w = strtok_r(text, ";", &save); w; w = strtok_r(NULL, ";", &save)) {
		strbuf_add(&body, w, 2);
		strbuf_putc(&body, (char)strlen(w + 3));
		strbuf_puts(&body, w + 3);
	}
	strbuf_printf(out, "x " DEVICES "/%s/vpd = 90%02zx00", addr, body.len);
	for (size_t i = 0; i < body.len; i++)
		strbuf_printf(out, "%02x", (unsigned char)body.s[i]);
	strbuf_puts(out, strchr(keywords, '!') ? "91ff00\n" : "78\n");
}

struct machine {
	struct sysroot *root;
	struct hw_inventory *inv;
};

/* A ConnectX-8 with a VF and two data direct functions; vpd NULL: it has none. */
static struct machine look_at(const char *nic, const char *direct, const char *second)
{
	const char *const addr[] = { NIC, DIRECT, SECOND }, *const vpd[] = { nic, direct, second };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct machine m;

	put_function(&text, NIC, "0x1023", "0x020000");
	put_function(&text, VF, "0x101e", "0x020000");
	strbuf_puts(&text, "l " DEVICES "/" VF "/physfn -> ../" NIC "\n");
	strbuf_puts(&text, "l " DEVICES "/" NIC "/virtfn0 -> ../" VF "\n");
	strbuf_puts(&text, "f " DEVICES "/" NIC "/sriov_totalvfs = 1\\n\n");
	strbuf_puts(&text, "f proc/net/route = Iface\\n\n");
	put_function(&text, DIRECT, "0x2100", "0x088000");
	put_function(&text, SECOND, "0x2100", "0x088000");
	for (size_t i = 0; i < ARRAY_LEN(addr); i++) {
		if (vpd[i])
			put_vpd(&text, addr[i], vpd[i]);
	}
	m.root = fixture_text(strbuf_str(&text));
	m.inv = fixture_discover(m.root);
	return m;
}

static void leave(struct machine *m)
{
	hw_inventory_free(m->inv);
	fixture_close(m->root);
}

static int find(const struct hw_inventory *inv, const char *addr)
{
	struct bdf bdf;

	assert_int_equal(bdf_parse(addr, &bdf), 0);
	return hw_find_pci(inv, bdf);
}

/* For a VF that of its PF. */
static const char *direct_of(const struct hw_inventory *inv, const char *addr, char buf[BDF_STRLEN])
{
	int pci = find(inv, addr), pf = pci < 0 ? -1 : inv->pci[pci].physfn;
	const struct hw_card *card = hw_find_card(inv, pf < 0 ? pci : pf);
	int direct = card ? card->direct : -1;

	return direct < 0 ? "-" : bdf_format(inv->pci[direct].bdf, buf);
}

static bool is_noted(const struct hw_inventory *inv, const char *sentence)
{
	for (size_t i = 0; i < inv->n_notes; i++) {
		if (str_starts(inv->notes[i], sentence))
			return true;
	}
	return false;
}

static void a_nic_has_the_data_direct_function_of_its_board(void **state)
{
	static const struct {
		const char *nic, *direct, *second, *want, *note;
	} rows[] = {
		{ "V3=aa;VU=n", "V3=aa;VU=x", "V3=bb;VU=y", DIRECT, NULL },
		{ "V3=bb", "V3=aa", "V3=bb", SECOND, NULL },
		{ "V3=aa;VU=y", "V3=aa;VU=x", "V3=bb;VU=y", DIRECT, NULL }, /* V3 counts first */
		{ "VU=y", "V3=aa;VU=x", "V3=bb;VU=y", SECOND, NULL },
		{ "V3=cc;VU=y", "V3=aa;VU=x", "VU=y", SECOND, NULL },
		{ "V3=aa;VU=y", "V3=aa;VU=x", "V3=aa;VU=y", SECOND, NULL }, /* VU singles one out */
		{ "V3=aa", "V3=aa", "V3=aa", "-",
		  NIC ": 2 data direct functions are of its board" },
		{ "VU=x", "VU=x", "VU=x", "-", NIC ": 2 data direct functions are of its board" },
		{ "V3=aa", "V3=bb", "V3=cc", "-", NIC ": no data direct function is of its board" },
		{ "SN=1", "V3=aa", "V3=bb", "-", NIC ": vpd has neither V3 nor VU" },
		{ NULL, "V3=aa", "V3=bb", "-",
		  NIC ": vpd cannot be read: No such file or directory" },
		{ "V3=aa", NULL, "V3=bb", "-", DIRECT ": vpd cannot be read" },
		{ "V3=a\x01", "V3=a\x01", "V3=bb", "-",
		  NIC
		  ": vpd is damaged: its V3 is not printable ASCII; its part in Data Direct is not known until railmated is restarted" },
		{ "V3=a\x01;VU=y", "V3=aa;VU=x", "V3=bb;VU=y", SECOND,
		  NIC
		  ": vpd is damaged: its V3 is not printable ASCII; what can be read of V3 and VU is used" },
		{ "V3=aa;SN=!", "V3=aa;SN=!", "V3=bb", DIRECT,
		  NIC
		  ": vpd is damaged: the tag at byte 12 claims 255 bytes, and 0 are there; what can be read" },
	};
	char buf[BDF_STRLEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine m = look_at(rows[i].nic, rows[i].direct, rows[i].second);

		assert_string_equal(direct_of(m.inv, NIC, buf), rows[i].want);
		assert_string_equal(direct_of(m.inv, VF, buf),
				    rows[i].want); /* where its PF's is */
		assert_string_equal(direct_of(m.inv, DIRECT, buf), "-");
		assert_true(rows[i].note ? is_noted(m.inv, rows[i].note) : !m.inv->n_notes);
		leave(&m);
	}
}

static struct hw_inventory *look_again(const struct machine *m)
{
	struct hw_inventory *inv = NULL;

	assert_int_equal(discover_host(m->root, NULL, 0, m->inv, &inv, NULL), 0);
	return inv;
}

static void change_vpd(const struct machine *m, const char *addr, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/" DEVICES "/%s/vpd", sysroot_path(m->root), addr);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void what_was_read_is_not_read_again(void **state)
{
	struct machine m = look_at("V3=aa", "V3=aa", NULL);
	struct hw_inventory *again;
	char buf[BDF_STRLEN];

	(void)state;
	change_vpd(&m, NIC, "nonsense");
	change_vpd(&m, DIRECT, "nonsense");
	change_vpd(&m, SECOND, "nonsense");
	again = look_again(&m);
	assert_string_equal(direct_of(again, NIC, buf), DIRECT);
	assert_true(
		is_noted(again, SECOND ": vpd cannot be read")); /* nor what could not be read */
	assert_true(hw_inventory_same(m.inv, again));
	hw_inventory_free(again);
	leave(&m);
}

static void a_function_that_was_not_there_is_read(void **state)
{
	struct machine m = look_at("V3=aa", "V3=aa", "V3=bb");
	struct hw_inventory *again;
	char buf[BDF_STRLEN];

	(void)state;
	m.inv->pci[find(m.inv, DIRECT)].device = 0x2101; /* another one is there now */
	m.inv->pci[find(m.inv, NIC)].device = 0x1025;
	change_vpd(&m, DIRECT, "nonsense");
	again = look_again(&m);
	assert_string_equal(direct_of(again, NIC, buf), "-");
	assert_true(is_noted(again, DIRECT ": vpd is damaged"));
	assert_false(hw_inventory_same(m.inv, again));
	hw_inventory_free(again);
	leave(&m);
}

/* A scrubbed capture shows the same pairs, and no identity of a card. */
static void a_capture_pairs_without_names(void **state)
{
	struct machine m = look_at("SN=MT2511X1;V3=7ec1;VU=MT2511X1NIC0", "V3=7ec1;VU=MT2511X1DMA0",
				   "V3=a\x01");
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct machine copy;
	char buf[BDF_STRLEN];

	(void)state;
	assert_int_equal(hosttree_capture(m.root, true, &text, NULL), 0);
	assert_null(strstr(strbuf_str(&text), "4d5432353131")); /* MT2511 */
	assert_null(strstr(strbuf_str(&text), "37656331"));	/* 7ec1 */
	copy.root = fixture_text(strbuf_str(&text));
	copy.inv = fixture_discover(copy.root);
	assert_string_equal(direct_of(copy.inv, VF, buf), DIRECT);
	assert_true(is_noted(copy.inv, SECOND ": vpd has neither V3 nor VU"));
	leave(&copy);
	leave(&m);
}

/* Reading a VPD takes long: a NIC's is left alone where no data direct function is. */
static void vpd_of_a_machine_without_data_direct_is_not_read(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct machine m;

	(void)state;
	put_function(&text, NIC, "0x1023", "0x020000");
	m.root = fixture_text(strbuf_str(&text));
	m.inv = fixture_discover(m.root);
	assert_int_equal(m.inv->n_card + m.inv->n_notes, 0);
	leave(&m);
}

static void vpds_are_read_beside_each_other_and_the_scan(void **state)
{
	struct machine m;
	char buf[BDF_STRLEN];

	(void)state;
	slow.meet = 3;
	slow.met = 0;
	slow.routes = false;
	m = look_at("V3=aa", "V3=aa", "V3=bb");
	slow.meet = 0;
	assert_string_equal(direct_of(m.inv, NIC, buf), DIRECT);
	assert_int_equal(m.inv->n_notes, 0);
	leave(&m);
}

static void what_was_read_before_a_failure_counts(void **state)
{
	struct machine m;
	char buf[BDF_STRLEN];

	(void)state;
	slow.fail_late = true;
	m = look_at("V3=aa", "V3=aa", "V3=bb");
	slow.fail_late = false;
	assert_string_equal(direct_of(m.inv, NIC, buf), DIRECT);
	assert_true(is_noted(
		m.inv, NIC
		": vpd cannot be read beyond byte 9: Input/output error; what can be read of V3 and VU is used"));
	leave(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nic_has_the_data_direct_function_of_its_board),
		cmocka_unit_test(what_was_read_is_not_read_again),
		cmocka_unit_test(a_function_that_was_not_there_is_read),
		cmocka_unit_test(vpds_are_read_beside_each_other_and_the_scan),
		cmocka_unit_test(what_was_read_before_a_failure_counts),
		cmocka_unit_test(a_capture_pairs_without_names),
		cmocka_unit_test(vpd_of_a_machine_without_data_direct_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
