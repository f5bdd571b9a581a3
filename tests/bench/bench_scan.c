/*
 * From the tree of a machine to the picture of the node: discover_host() and node_new() on a large
 * machine.
 *
 *   bench_scan tree PFS VFS GPUS
 *       prints such a machine as host.tree
 *   bench_scan time DIR COUNT
 *       scans the machine below DIR, in turn with the floor: every file and link below DIR/sys and
 * DIR/proc read once, nothing understood
 *
 *   bench_scan vpd DIR MS
 *       the first scan of the machine below DIR, whose cards take MS milliseconds for a VPD, and
 *       the next one, as a JSON object
 *
 * `time` prints one JSON object on standard output, in milliseconds; the first scan, which warms
 * up, is not counted.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "pool/node.h"
#include "support/bigtree.h"
#include "sysroot/sysroot.h"

struct bench {
	const char *dir;
	struct sysroot *root;
	struct config *cfg;
	size_t rounds, vfs, files;
	double *scan, *floor;
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int print_tree(char **argv)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	uint64_t pfs, vfs, gpus;

	if (str_to_u64(argv[0], 10, 64, &pfs) < 0 || !pfs ||
	    str_to_u64(argv[1], 10, 127, &vfs) < 0 || str_to_u64(argv[2], 10, 64, &gpus) < 0)
		return -1;
	bigtree_write((int)pfs, (int)vfs, (int)gpus, &text);
	fputs(strbuf_str(&text), stdout);
	return 0;
}

static size_t files_read;

/* The link or file at name, relative to the folder fd. */
static void read_entry(int fd, const struct dirent *e)
{
	char value[4096];
	_cleanup_close_ int file = -1;

	files_read++;
	if (e->d_type == DT_LNK) {
		if (readlinkat(fd, e->d_name, value, sizeof(value)) < 0)
			perror(e->d_name);
		return;
	}
	file = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC);
	if (file < 0 || read(file, value, sizeof(value)) < 0)
		perror(e->d_name);
}

/* Takes fd. */
static void read_folder(int fd)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_type != DT_DIR)
			read_entry(fd, e);
		else if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			read_folder(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	}
	if (d)
		closedir(d);
}

static double time_floor(struct bench *b)
{
	double begin = now_ms();

	files_read = 0;
	read_folder(open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	b->files = files_read;
	return now_ms() - begin;
}

static int time_scan(struct bench *b, size_t round, struct err *err)
{
	double begin = now_ms();
	struct node *node;
	int r;

	r = load_node(b->root, b->cfg, NULL, &node, err);
	if (r < 0)
		return r;
	b->scan[round] = now_ms() - begin;
	b->vfs = node->pools[0].n_devs;
	node_unref(node);
	return 0;
}

static int measure(struct bench *b, struct err *err)
{
	int r = time_scan(b, 0, err);

	time_floor(b);
	for (size_t i = 0; r == 0 && i < b->rounds; i++) {
		r = time_scan(b, i, err);
		b->floor[i] = time_floor(b);
	}
	return r;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_series(const char *name, double *ms, size_t n)
{
	qsort(ms, n, sizeof(*ms), by_value);
	printf("\"%s\": {\"min_ms\": %.3f, \"p50_ms\": %.3f, \"max_ms\": %.3f}, ", name, ms[0],
	       ms[n / 2], ms[n - 1]);
}

static int print_times(struct bench *b)
{
	struct err err = { 0 };
	int r;

	r = sysroot_open(b->dir, &b->root, &err);
	if (r < 0) {
		fprintf(stderr, "bench_scan: %s\n", err.msg);
		return 1;
	}
	b->cfg = config_default();
	b->scan = xcalloc(b->rounds, sizeof(double));
	b->floor = xcalloc(b->rounds, sizeof(double));
	r = measure(b, &err);
	if (r < 0) {
		fprintf(stderr, "bench_scan: %s\n", err.msg);
	} else {
		printf("{");
		print_series("scan", b->scan, b->rounds);
		print_series("floor", b->floor, b->rounds);
		printf("\"vfs\": %zu, \"files\": %zu, \"scans\": %zu}\n", b->vfs, b->files,
		       b->rounds);
	}
	free(b->scan);
	free(b->floor);
	config_free(b->cfg);
	sysroot_close(b->root);
	return r < 0;
}

/* --- slow cards --- */

static uint64_t vpd_ms;
static atomic_size_t vpds;

/* Of this program: the first read() of a VPD takes as long as a card may. */
ssize_t read(int fd, void *buf, size_t n)
{
	static const char vpd[] = "/vpd";
	struct timespec wait = { (time_t)(vpd_ms / 1000), (long)(vpd_ms % 1000) * 1000000 };
	char link[64], path[512];
	ssize_t len;

	if (!vpd_ms)
		return syscall(SYS_read, fd, buf, n);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path));
	if (len > 4 && !memcmp(path + len - 4, vpd, 4) && !lseek(fd, 0, SEEK_CUR)) {
		atomic_fetch_add(&vpds, 1);
		nanosleep(&wait, NULL);
	}
	return syscall(SYS_read, fd, buf, n);
}

static int time_vpd(struct bench *b)
{
	struct node *node = NULL, *again = NULL;
	struct err err = { 0 };
	double ms[3] = { now_ms() };
	int r = sysroot_open(b->dir, &b->root, &err);

	b->cfg = config_default();
	if (r == 0)
		r = load_node(b->root, b->cfg, NULL, &node, &err);
	ms[1] = now_ms();
	if (r == 0)
		r = load_node(b->root, b->cfg, node, &again, &err);
	ms[2] = now_ms();
	if (r < 0)
		fprintf(stderr, "bench_scan: %s\n", err.msg);
	else
		printf("{\"first_ms\": %.3f, \"again_ms\": %.3f, \"vpds\": %zu}\n", ms[1] - ms[0],
		       ms[2] - ms[1], vpds);
	node_unref(again);
	node_unref(node);
	config_free(b->cfg);
	sysroot_close(b->root);
	return r < 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds;

	if (argc == 5 && !strcmp(argv[1], "tree") && print_tree(argv + 2) == 0)
		return 0;
	if (argc == 4 && !strcmp(argv[1], "time") &&
	    str_to_u64(argv[3], 10, 100000, &rounds) == 0 && rounds) {
		struct bench b = { .dir = argv[2], .rounds = rounds };

		return print_times(&b);
	}
	if (argc == 4 && !strcmp(argv[1], "vpd") && str_to_u64(argv[3], 10, 10000, &vpd_ms) == 0) {
		struct bench b = { .dir = argv[2] };

		return time_vpd(&b);
	}
	fputs("usage: bench_scan tree PFS VFS GPUS | bench_scan time DIR COUNT | bench_scan vpd DIR MS\n",
	      stderr);
	return 2;
}
