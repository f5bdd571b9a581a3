#include "support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>
#include <ftw.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hosttree/hosttree.h"
#include "sysroot/sysroot.h"

#define ROOM_BYTES (128u << 20)

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fixture_remove_tree(const char *path)
{
	nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

/* Memory when there is enough: a fixture is some thousand small files, and a disk that others write
 * to may take seconds for a few of them. */
static const char *parent(void)
{
	static const char shm[] = "/dev/shm";
	const char *top = getenv("TMPDIR");
	struct statvfs fs;

	if (top && *top)
		return top;
	if (access(shm, W_OK) < 0 || statvfs(shm, &fs) < 0 ||
	    (uint64_t)fs.f_bavail * fs.f_frsize < ROOM_BYTES)
		return "/tmp";
	return shm;
}

char *fixture_folder(void)
{
	char *path = xasprintf("%s/railmate-test-XXXXXX", parent());

	if (!mkdtemp(path))
		fail_msg("%s cannot be made", path);
	return path;
}

struct sysroot *fixture_text_n(const char *text, size_t len)
{
	_cleanup_free_ char *folder = fixture_folder();
	struct sysroot *root = NULL;
	struct err err = { 0 };

	if (hosttree_unpack(text, len, folder, &err) < 0 || sysroot_open(folder, &root, &err) < 0) {
		fixture_remove_tree(folder);
		fail_msg("fixture: %s", err.msg);
	}
	return root;
}

struct sysroot *fixture_text(const char *text)
{
	return fixture_text_n(text, strlen(text));
}

static void read_file(const char *path, struct strbuf *out)
{
	FILE *f = fopen(path, "re");
	char buf[65536];
	size_t n;

	if (!f)
		fail_msg("fixture %s cannot be opened", path);
	while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(out, buf, n);
	if (f)
		fclose(f);
}

struct sysroot *fixture_open(const char *host_tree_file)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	read_file(host_tree_file, &text);
	return fixture_text_n(strbuf_str(&text), text.len);
}

void fixture_close(struct sysroot *root)
{
	_cleanup_free_ char *folder = xstrdup(sysroot_path(root));

	sysroot_close(root);
	fixture_remove_tree(folder);
}

struct hw_inventory *fixture_discover(const struct sysroot *root)
{
	struct hw_inventory *inv = NULL;
	struct err err = { 0 };

	if (discover_host(root, NULL, 0, NULL, &inv, &err) < 0)
		fail_msg("discover: %s", err.msg);
	return inv;
}
