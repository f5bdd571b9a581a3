/*
 * What a function knows of itself: its VPD, its configuration space, the names of its ids, and
 * which data direct function belongs to which NIC.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pci/pci.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"
#include "discover/discover.h"
#include "discover/scan-internal.h"
#include "hw/vpd.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

/* The VPD of one function; err: its fault, unset when there is none. */
struct vpd_read {
	struct bdf bdf;
	struct vpd vpd;
	struct err err;
};

/*
 * Reading VPD takes a card milliseconds to tens of them, a function at a time: so all of them are
 * read beside each other, in threads, while the scan goes on with files that sysfs has at hand.
 */

#define MAX_THREADS 16
#define STACK_BYTES (128u << 10)

struct scan_vpd {
	const struct sysroot *root;
	struct vpd_read *v;
	size_t n;
	atomic_size_t next;
	pthread_t thread[MAX_THREADS];
	size_t n_threads;
};

static void read_one(const struct sysroot *root, struct vpd_read *ret)
{
	_cleanup_free_ uint8_t *bytes = xcalloc(VPD_MAX, 1);
	char addr[BDF_STRLEN];
	_cleanup_close_ int fd =
		sysroot_openat(root, O_RDONLY | O_NONBLOCK, "sys/bus/pci/devices/%s/vpd",
			       bdf_format(ret->bdf, addr));
	ssize_t got = fd < 0 ? fd : 1;
	struct err err = { 0 };
	size_t n = 0;

	while (got > 0 && n < VPD_MAX) {
		got = read(fd, bytes + n, VPD_MAX - n);
		if (got < 0)
			got = -errno;
		else
			n += (size_t)got;
	}
	vpd_parse(bytes, n, &ret->vpd, &err);
	if (got < 0 && n)
		err_set(&ret->err, (int)-got, "vpd cannot be read beyond byte %zu: %s", n,
			strerror((int)-got));
	else if (got < 0)
		err_set(&ret->err, (int)-got, "vpd cannot be read: %s", strerror((int)-got));
	else if (err.code)
		err_set(&ret->err, err.code, "vpd is damaged: %s", err.msg);
	else if (!*ret->vpd.board && !*ret->vpd.vuid)
		err_set(&ret->err, ENODATA, "vpd has neither V3 nor VU");
}

static void *read_some(void *arg)
{
	struct scan_vpd *r = arg;
	size_t i;

	while ((i = atomic_fetch_add(&r->next, 1)) < r->n)
		read_one(r->root, &r->v[i]);
	return NULL;
}

/* Reads VPD in threads of its own, which are over when scan_vpd_join() returns; root stays. */
static struct scan_vpd *scan_vpd_start(const struct sysroot *root, const struct bdf *functions,
				       size_t n)
{
	struct scan_vpd *r = xcalloc(1, sizeof(*r));

	r->root = root;
	r->v = xcalloc(n, sizeof(*r->v));
	r->n = n;
	for (size_t i = 0; i < n; i++)
		r->v[i].bdf = functions[i];
	while (r->n_threads < n && r->n_threads < MAX_THREADS &&
	       thread_start(&r->thread[r->n_threads], "vpd", STACK_BYTES, read_some, r) == 0)
		r->n_threads++;
	return r;
}

/* in the order of the functions */
static const struct vpd_read *scan_vpd_join(struct scan_vpd *r, size_t *ret_n)
{
	read_some(r); /* where no thread may be started */
	for (size_t i = 0; i < r->n_threads; i++)
		pthread_join(r->thread[i], NULL);
	r->n_threads = 0;
	*ret_n = r->n;
	return r->v;
}

static void scan_vpd_free(struct scan_vpd *r)
{
	size_t n;

	if (!r)
		return;
	scan_vpd_join(r, &n);
	free(r->v);
	free(r);
}

/*
 * The layout of configuration space and the names of devices, by libpci. Config space is read
 * through the sysfs file at the few offsets needed: on real hardware each dword is a slow bus
 * access, and libpci's own scan would open every function again.
 */

#define CONFIG_SIZE   4096
#define FIRST_EXT_CAP 0x100
#define MAX_EXT_CAPS  ((CONFIG_SIZE - FIRST_EXT_CAP) / 8)

static bool read_dword(int fd, int offset, uint32_t *ret)
{
	uint32_t v;

	if (pread(fd, &v, sizeof(v), offset) != sizeof(v))
		return false;
	*ret = le32toh(v);
	return true;
}

/* A list that leads backwards may be a ring: so steps are bounded by the entries that fit. */
int acs_control(const struct dir *dev)
{
	_cleanup_close_ int fd = dir_openat(dev, "config", O_RDONLY | O_NONBLOCK);
	int at = FIRST_EXT_CAP;
	uint32_t head, acs;

	for (int i = 0; fd >= 0 && i < MAX_EXT_CAPS && at >= FIRST_EXT_CAP; i++) {
		if (!read_dword(fd, at, &head) || !head || head == UINT32_MAX)
			break;
		if ((head & 0xffff) == PCI_EXT_CAP_ID_ACS)
			return read_dword(fd, at + PCI_ACS_CAP, &acs) ? (int)(acs >> 16) : -1;
		at = (int)(head >> 20) & ~3;
	}
	return -1;
}

/* libpci's default hook ends the process; ours must not return either. */
static _Thread_local jmp_buf *on_error;

static __attribute__((noreturn)) void leave(char *msg, ...)
{
	longjmp(*on_error, 1);
}

static void be_silent(char *msg, ...)
{
}

static char *find_name(struct pci_access *access, uint16_t vendor, uint16_t device)
{
	char name[256];
	jmp_buf here;
	const char *r;

	if (setjmp(here))
		return NULL;
	on_error = &here;
	r = pci_lookup_name(access, name, sizeof(name),
			    PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS |
				    PCI_LOOKUP_NO_HWDB,
			    vendor, device);
	return r ? xstrdup(r) : NULL;
}

char *discover_pci_name(const struct sysroot *root, uint16_t vendor, uint16_t device)
{
	_cleanup_close_ int fd = -1;
	struct pci_access *access;
	char path[64], *name;

	if (!sysroot_is_live(root)) {
		/* By descriptor: a link in that path must not lead libpci out of the root. */
		fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, "usr/share/misc/pci.ids");
		if (fd < 0)
			return NULL;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	access = pci_alloc();
	access->error = leave;
	access->warning = be_silent;
	access->debug = be_silent;
	if (fd >= 0)
		pci_set_name_list_path(access, path, 0);
	name = find_name(access, vendor, device);
	pci_cleanup(access);
	return name;
}

/*
 * Data Direct: a NIC whose transfers with GPUs are done by a PCI function elsewhere in the tree.
 * Their VPD has the pairs; reading one takes long, so it is done
 * on machines that have such functions, of those and of the NICs that may have one, and once.
 * Facts: rdma-core, kernel-boot/rdma_topo; drivers/infiniband/hw/mlx5/data_direct.c.
 */

static const uint16_t nics_with_data_direct[] = { 0x1023, 0x1025 }; /* ConnectX-8, ConnectX-9 */

bool discover_reads_vpd(const struct hw_pci *f)
{
	if (hw_is_data_direct(f))
		return true;
	if (f->vendor != 0x15b3 || f->is_vf || !hw_is_nic(f))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(nics_with_data_direct); i++) {
		if (f->device == nics_with_data_direct[i])
			return true;
	}
	return false;
}

static const char *text_or_null(struct scan *s, const char *text)
{
	return *text ? arena_strdup(s->arena, text) : NULL;
}

static bool is_known(const struct hw_card *card)
{
	return card->board || card->vuid;
}

/* Taken to be the same function: at the same address, with the same ids. */
static const struct hw_card *find_before(const struct hw_inventory *before, const struct hw_pci *f)
{
	for (size_t i = 0; before && i < before->n_card; i++) {
		const struct hw_pci *was = &before->pci[before->card[i].pci];

		if (!bdf_cmp(was->bdf, f->bdf) && was->vendor == f->vendor &&
		    was->device == f->device)
			return &before->card[i];
	}
	return NULL;
}

static void take_read(struct scan *s, const struct vpd_read *read, struct hw_card *ret)
{
	ret->name = text_or_null(s, read->vpd.name);
	ret->serial = text_or_null(s, read->vpd.serial);
	ret->board = text_or_null(s, read->vpd.board);
	ret->vuid = text_or_null(s, read->vpd.vuid);
	ret->problem = text_or_null(s, read->err.msg);
}

static void add_card(struct scan *s, int pci, const struct hw_card *known,
		     const struct vpd_read *read)
{
	struct hw_card card = { .pci = pci, .direct = -1 };
	char addr[BDF_STRLEN];

	if (known) {
		card.name = arena_strdup(s->arena, known->name);
		card.serial = arena_strdup(s->arena, known->serial);
		card.board = arena_strdup(s->arena, known->board);
		card.vuid = arena_strdup(s->arena, known->vuid);
		card.problem = arena_strdup(s->arena, known->problem);
	} else {
		take_read(s, read, &card);
	}
	if (card.problem)
		scan_note(
			s, "%s: %s; %s", bdf_format(s->pci[pci].bdf, addr), card.problem,
			is_known(&card)
				? "what can be read of V3 and VU is used"
				: "its part in Data Direct is not known until railmated is restarted");
	s->card = xgrow(s->card, &s->cap_card, s->n_card + 1, sizeof(*s->card));
	s->card[s->n_card++] = card;
}

static bool is_equal(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* How many data direct functions have the card's V3, or else its VU; *ret: the last of them. */
static size_t count_matches(const struct scan *s, const struct hw_card *card, bool by_vuid,
			    int *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_card; i++) {
		const struct hw_card *other = &s->card[i];

		if (!hw_is_data_direct(&s->pci[other->pci]) ||
		    !(by_vuid ? is_equal(card->vuid, other->vuid)
			      : is_equal(card->board, other->board)))
			continue;
		*ret = other->pci;
		n++;
	}
	return n;
}

/* rdma_topo compares V3; where it does not single one out, VU may. */
static void find_direct(struct scan *s, struct hw_card *card)
{
	char addr[BDF_STRLEN];
	int found = -1;
	size_t boards = count_matches(s, card, false, &found);
	size_t n = boards == 1 ? 1 : count_matches(s, card, true, &found);

	if (n == 1) {
		card->direct = found;
		return;
	}
	bdf_format(s->pci[card->pci].bdf, addr);
	if (n || boards)
		scan_note(
			s,
			"%s: %zu data direct functions are of its board (V3, VU); none is taken for its own",
			addr, boards ? boards : n);
	else
		scan_note(
			s,
			"%s: no data direct function is of its board (V3, VU); taken to be where its PCI function is",
			addr);
}

void scan_cards_begin(struct scan *s, const struct hw_inventory *before)
{
	_cleanup_free_ struct bdf *list = xcalloc(s->n_pci + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < s->n_pci && !s->any_direct; i++)
		s->any_direct = hw_is_data_direct(&s->pci[i]);
	for (size_t i = 0; s->any_direct && i < s->n_pci; i++) {
		if (discover_reads_vpd(&s->pci[i]) && !find_before(before, &s->pci[i]))
			list[n++] = s->pci[i].bdf;
	}
	if (n)
		s->vpd = scan_vpd_start(s->root, list, n);
}

void scan_cards(struct scan *s, const struct hw_inventory *before)
{
	size_t n = 0, next = 0;
	const struct vpd_read *read = s->vpd ? scan_vpd_join(s->vpd, &n) : NULL;

	/* Both are sorted by address, and bridges alone were added since. */
	for (size_t i = 0; s->any_direct && i < s->n_pci; i++) {
		const struct hw_card *known;

		if (!discover_reads_vpd(&s->pci[i]))
			continue;
		known = find_before(before, &s->pci[i]);
		if (known)
			add_card(s, (int)i, known, NULL);
		else if (next < n && !bdf_cmp(read[next].bdf, s->pci[i].bdf))
			add_card(s, (int)i, NULL, &read[next++]);
	}
	scan_vpd_free(s->vpd);
	for (size_t i = 0; i < s->n_card; i++) {
		if (is_known(&s->card[i]) && !hw_is_data_direct(&s->pci[s->card[i].pci]))
			find_direct(s, &s->card[i]);
	}
}
