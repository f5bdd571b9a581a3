#include "daemon/topofile-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "load/load.h"
#include "pool/node.h"
#include "render/topofile.h"

#define BYTES_MAX (1u << 20) /* of a file of ours: far above all that its elements can hold */

static const struct kind {
	const char *name;
	int version;
} kinds[] = { { TOPOFILE_NCCL, 1 }, { TOPOFILE_RCCL, 2 } };

static bool is_wanted(const struct node *node, int version)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (node->pools[i].n_devs && topofile_wanted(node, node->pools[i].cfg) == version)
			return true;
	}
	return false;
}

static bool is_there(const char *path, const char *text)
{
	_cleanup_free_ char *old = NULL;
	size_t len;

	return load_file(path, BYTES_MAX, &old, &len, NULL) == 0 && len == strlen(text) &&
	       !memcmp(old, text, len);
}

/* Containers read it as any user, hence the mode. */
static int replace(const char *path, const char *text, struct err *err)
{
	_cleanup_free_ char *temporary = xasprintf("%s.tmp", path);
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = 0644
	};

	return file_write(&f, text, strlen(text), err);
}

static void drop(const char *path)
{
	if (unlink(path) == 0)
		log_info("topofile", "the topology file is not needed any more path=%s", path);
	else if (errno != ENOENT)
		log_warn("topofile", "cannot remove the topology file path=%s error=%m", path);
}

static void put(const struct node *node, const char *path, const struct topofile_out *file)
{
	const struct topofile_in in = topofile_in(node, 0);
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	struct err err = { 0 };

	if (is_there(path, file->text))
		return;
	for (size_t i = 0; i < file->n_notes; i++)
		log_warn("topofile", "the topology file is not complete path=%s reason=%s", path,
			 file->notes[i]);
	if (replace(path, file->text, &err) < 0) {
		log_error("topofile", "cannot write the topology file error=%s", err.msg);
		return;
	}
	topofile_needed(&in, &why);
	log_info("topofile", "the topology file was written path=%s reason=%s", path,
		 strbuf_str(&why));
}

/* A file that cannot be made is removed: an old one would describe another node. */
static void keep(const struct node *node, const char *path, int version)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	const struct topofile_in in = topofile_in(node, version);
	struct topofile_out file;
	struct err err = { 0 };

	if (topofile_render(&in, arena, &file, &err) == 0) {
		put(node, path, &file);
		return;
	}
	log_warn("topofile", "there is no topology file path=%s reason=%s", path, err.msg);
	drop(path);
}

void topofile_keep(const char *dir, const struct node *node)
{
	for (size_t i = 0; dir && i < ARRAY_LEN(kinds); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, kinds[i].name);

		if (!is_wanted(node, kinds[i].version)) {
			drop(path);
			continue;
		}
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			log_error(
				"topofile",
				"cannot create the directory of the topology file path=%s error=%m",
				dir);
		keep(node, path, kinds[i].version);
	}
}
