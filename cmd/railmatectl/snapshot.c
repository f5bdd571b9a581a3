/* railmatectl snapshot: a machine as host.tree text, and back. */
#include <errno.h>
#include <getopt.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/load.h"
#include "discover/hosttree.h"
#include "discover/sysroot.h"
#include "railmatectl.h"

#define TREE_BYTES_MAX (64u << 20)

struct snapshot_options {
	const char *root, *output, *tar;
	bool scrub;
};

static int write_file(const char *path, const struct strbuf *text)
{
	FILE *f = fopen(path, "we");
	bool bad;

	if (!f)
		return fail(EXIT_FAILED, "open %s: %m", path);
	bad = fwrite(strbuf_str(text), 1, text->len, f) != text->len;
	bad |= fclose(f) != 0;
	return bad ? fail(EXIT_FAILED, "write %s: %m", path) : EXIT_DONE;
}

/* Runs a program found on PATH and waits for it; its exit status, or -1. */
static int run_program(const char *const *argv)
{
	extern char **environ;
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The archive holds what `snapshot unpack` would make, so both forms are the same machine. */
static int write_tar(const char *path, const struct strbuf *text)
{
	char dir[] = "/tmp/railmate-snapshot-XXXXXX";
	const char *const tar[] = { "tar",	  "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
				    "--mtime=@0", "-C",		 dir,	      "-cf",	   path,
				    ".",	  NULL };
	const char *const rm[] = { "rm", "-rf", "--", dir, NULL };
	struct err err = { 0 };
	int code = EXIT_DONE;

	if (!mkdtemp(dir))
		return fail(EXIT_FAILED, "make a temporary directory %s: %m", dir);
	if (hosttree_unpack(strbuf_str(text), text->len, dir, &err) < 0)
		code = fail(EXIT_FAILED, "%s", err.msg);
	else if (run_program(tar) != 0)
		code = fail(EXIT_FAILED, "tar could not write %s", path);
	if (run_program(rm) != 0)
		code = fail(EXIT_FAILED, "cannot remove the temporary directory %s", dir);
	return code;
}

static int capture(const struct snapshot_options *opt)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct sysroot *root = NULL;
	struct err err = { 0 };
	int code = EXIT_DONE;

	if (sysroot_open(opt->root, &root, &err) < 0 || hosttree_capture(root, opt->scrub, &text, &err) < 0)
		code = fail(EXIT_FAILED, "%s", err.msg);
	sysroot_close(root);
	if (code == EXIT_DONE && opt->tar)
		code = write_tar(opt->tar, &text);
	if (code == EXIT_DONE && opt->output)
		code = write_file(opt->output, &text);
	else if (code == EXIT_DONE && !opt->tar)
		code = print_out(&text);
	return code;
}

static int unpack(const char *file, const char *dir)
{
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	size_t len;

	if (load_file(file, TREE_BYTES_MAX, &text, &len, &err) < 0 ||
	    hosttree_unpack(text, len, dir, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	return EXIT_DONE;
}

static const struct option options[] = {
	{ "root", required_argument, NULL, 'r' },
	{ "scrub", no_argument, NULL, 's' },
	{ "output", required_argument, NULL, 'o' },
	{ "tar", required_argument, NULL, 't' },
	{ 0 },
};

int cmd_snapshot(int argc, char **argv)
{
	struct snapshot_options opt = { .root = "/" };
	int c;

	if (argc > 1 && !strcmp(argv[1], "unpack")) {
		if (argc != 4)
			return fail(EXIT_USAGE, "snapshot unpack needs FILE and DIR");
		return unpack(argv[2], argv[3]);
	}
	while ((c = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (c == 'r')
			opt.root = optarg;
		else if (c == 's')
			opt.scrub = true;
		else if (c == 'o')
			opt.output = optarg;
		else if (c == 't')
			opt.tar = optarg;
		else
			return EXIT_USAGE;
	}
	if (optind < argc)
		return fail(EXIT_USAGE, "snapshot takes no argument '%s'", argv[optind]);
	return capture(&opt);
}
