/* railmatectl snapshot: a machine as host.tree text, and back. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree.h"
#include "load/load.h"
#include "railmatectl.h"
#include "sysroot/sysroot.h"

#define TREE_BYTES_MAX (64u << 20)

static int capture(const char *path, const char *output, bool scrub)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct sysroot *root = NULL;
	struct err err = { 0 };
	int r = sysroot_open(path, &root, &err);

	if (r == 0)
		r = hosttree_capture(root, scrub, &text, &err);
	sysroot_close(root);
	if (r < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	if (output && !freopen(output, "we", stdout))
		return fail(EXIT_FAILED, "open %s: %m", output);
	return print_out(&text);
}

static int unpack(const char *file, const char *dir)
{
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	bool made;
	size_t len;

	if (load_file(file, TREE_BYTES_MAX, &text, &len, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	made = mkdir(dir, 0777) == 0;
	if (!made && errno != EEXIST)
		return fail(EXIT_FAILED, "make the directory %s: %m", dir);
	if (hosttree_unpack(text, len, dir, &err) < 0) {
		if (made)
			rmdir(dir); /* still empty when the text was refused */
		return fail(EXIT_FAILED, "%s: %s", file, err.msg);
	}
	return EXIT_DONE;
}

int cmd_snapshot(int argc, char **argv)
{
	const char *root = "/", *output = NULL;
	bool scrub = false;
	const struct word words[] = {
		{ "root", .value = &root },
		{ "scrub", .flag = &scrub },
		{ "output", .value = &output },
	};
	int r = read_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	/* Words that are no options: none, or unpack FILE DIR. */
	argc -= optind;
	argv += optind;
	if (!argc)
		return capture(root, output, scrub);
	if (strcmp(argv[0], "unpack") != 0)
		return fail(EXIT_USAGE, "snapshot takes no argument '%s'", argv[0]);
	if (argc != 3 || strcmp(root, "/") != 0 || scrub || output)
		return fail(EXIT_USAGE, "snapshot unpack takes no option, but FILE and DIR");
	return unpack(argv[1], argv[2]);
}
