/* railmatectl snapshot: a machine as host.tree text, and back. */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	const char *root, *output;
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

	if (sysroot_open(opt->root, &root, &err) < 0 ||
	    hosttree_capture(root, opt->scrub, &text, &err) < 0)
		code = fail(EXIT_FAILED, "%s", err.msg);
	sysroot_close(root);
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
		json_kv_string(&j, "tree", opt->output ? NULL : strbuf_str(&text));
		json_kv_int(&j, "entries", count_lines(strbuf_str(&text), text.len));
		json_kv_bool(&j, "scrubbed", opt->scrub);
		json_kv_string(&j, "output", opt->output);
		json_end_object(&j);
		strbuf_putc(&out, '\n');
		return print_out(&out);
	}
	return opt->output ? EXIT_DONE : print_out(&text);
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

int cmd_snapshot(int argc, char **argv)
{
	struct snapshot_options opt = { .root = "/" };
	const struct word words[] = {
		{ "root", .value = &opt.root },
		{ "scrub", .flag = &opt.scrub },
		{ "output", .value = &opt.output },
		{ "json", .flag = &opt.json },
	};
	int r = read_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	/* What is not an option: nothing, or unpack FILE DIR. */
	argc -= optind;
	argv += optind;
	if (!argc)
		return capture(&opt);
	if (strcmp(argv[0], "unpack") != 0)
		return fail(EXIT_USAGE, "snapshot takes no argument '%s'", argv[0]);
	if (argc != 3)
		return fail(EXIT_USAGE, "snapshot unpack needs FILE and DIR");
	if (strcmp(opt.root, "/") != 0 || opt.scrub || opt.output)
		return fail(EXIT_USAGE, "snapshot unpack takes no option but --json");
	return unpack(argv[1], argv[2], opt.json);
}
