/*
 * Reading VPD takes a card milliseconds to tens of them, a function at a time: so all of them are
 * read beside each other, in threads, while the scan goes on with files that sysfs has at hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "discover/scan-internal.h"

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

struct scan_vpd *scan_vpd_start(const struct sysroot *root, const struct bdf *functions, size_t n)
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

const struct vpd_read *scan_vpd_join(struct scan_vpd *r, size_t *ret_n)
{
	read_some(r); /* where no thread may be started */
	for (size_t i = 0; i < r->n_threads; i++)
		pthread_join(r->thread[i], NULL);
	r->n_threads = 0;
	*ret_n = r->n;
	return r->v;
}

void scan_vpd_free(struct scan_vpd *r)
{
	size_t n;

	if (!r)
		return;
	scan_vpd_join(r, &n);
	free(r->v);
	free(r);
}
