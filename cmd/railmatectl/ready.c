/* railmatectl ready: the probe that orders a rolling update. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "load/load.h"
#include "railmatectl.h"

#define BYTES_MAX 64

int cmd_ready(int argc, char **argv)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	size_t len;
	int r = read_options(argc, argv, NULL, 0);

	if (r != EXIT_DONE)
		return r;
	if (optind + 1 != argc)
		return fail(EXIT_USAGE, "ready: name the file of railmated's --ready-file");
	r = load_file(argv[optind], BYTES_MAX, &text, &len, &err);
	if (r == -ENOENT)
		return fail(EXIT_FAILED, "railmated is not ready: there is no %s", argv[optind]);
	if (r < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	strbuf_add(&out, text, len);
	return print_out(&out);
}
