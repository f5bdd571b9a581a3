/* railmatectl snapshot: a machine as host.tree text, and back. */
#include <errno.h>
#include <getopt.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree.h"
#include "load/load.h"
#include "railmatectl.h"
#include "sysroot/sysroot.h"

#define TREE_BYTES_MAX (64u << 20)

struct snapshot_options {
	const char *root, *output, *tar;
	bool scrub, json;
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
	const char *const tar[] = {
		"tar",	      "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
		"--mtime=@0", "-C",	     dir,	  "-cf",       path,
		".",	      NULL
	};
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

static int64_t count_lines(const char *text, size_t len)
{
	int64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static int capture(const struct snapshot_options *opt)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct sysroot *root = NULL;
	struct err err = { 0 };
	int code = EXIT_DONE;
	bool to_stdout;

	if (sysroot_open(opt->root, &root, &err) < 0 ||
	    hosttree_capture(root, opt->scrub, &text, &err) < 0)
		code = fail(EXIT_FAILED, "%s", err.msg);
	sysroot_close(root);
	to_stdout = !opt->output && !opt->tar;
	if (code != EXIT_DONE)
		return code;
	if (opt->tar)
		code = write_tar(opt->tar, &text);
	if (code == EXIT_DONE && opt->output)
		code = write_file(opt->output, &text);
	if (code != EXIT_DONE)
		return code;
	if (opt->json) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
		struct json j;

		/* The text itself is in it where it would be on standard output without --json. */
		json_init(&j, &out, 1);
		json_begin_object(&j);
		json_kv_string(&j, "tree", to_stdout ? strbuf_str(&text) : NULL);
		json_kv_int(&j, "entries", count_lines(strbuf_str(&text), text.len));
		json_kv_bool(&j, "scrubbed", opt->scrub);
		json_kv_string(&j, "output", opt->output);
		json_kv_string(&j, "tar", opt->tar);
		json_end_object(&j);
		strbuf_putc(&out, '\n');
		return print_out(&out);
	}
	return to_stdout ? print_out(&text) : EXIT_DONE;
}

static int unpack(const char *file, const char *dir, bool json)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	struct json j;
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
	if (!json)
		return EXIT_DONE;
	json_init(&j, &out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "directory", dir);
	json_kv_int(&j, "entries", count_lines(text, len));
	json_end_object(&j);
	strbuf_putc(&out, '\n');
	return print_out(&out);
}

static const struct option options[] = {
	{ "root", required_argument, NULL, 'r' },   { "scrub", no_argument, NULL, 's' },
	{ "output", required_argument, NULL, 'o' }, { "tar", required_argument, NULL, 't' },
	{ "json", no_argument, NULL, 'j' },	    { 0 },
};

int cmd_snapshot(int argc, char **argv)
{
	struct snapshot_options opt = { .root = "/" };
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
		if (c == 'r')
			opt.root = optarg;
		else if (c == 's')
			opt.scrub = true;
		else if (c == 'o')
			opt.output = optarg;
		else if (c == 't')
			opt.tar = optarg;
		else if (c == 'j')
			opt.json = true;
		else
			return refuse_option(argv, c);
	}
	/* What is not an option: nothing, or unpack FILE DIR. */
	argc -= optind;
	argv += optind;
	if (!argc)
		return capture(&opt);
	if (strcmp(argv[0], "unpack") != 0)
		return fail(EXIT_USAGE, "snapshot takes no argument '%s'", argv[0]);
	if (argc != 3)
		return fail(EXIT_USAGE, "snapshot unpack needs FILE and DIR");
	if (strcmp(opt.root, "/") != 0 || opt.scrub || opt.output || opt.tar)
		return fail(EXIT_USAGE, "snapshot unpack takes no option but --json");
	return unpack(argv[1], argv[2], opt.json);
}
