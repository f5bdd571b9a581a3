/* railmatectl release: an operator's word that no container uses a VF any more. */
#include <errno.h>
#include <getopt.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "control/control.h"
#include "hw/bdf.h"
#include "railmatectl.h"

#define ASK_TIMEOUT_MS 5000

int cmd_release(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct control_request ask = { .op = CONTROL_RELEASE };
	const char *socket = CONTROL_SOCKET;
	struct control_reply reply;
	struct err err = { 0 };
	bool sure = false;
	const struct word words[] = {
		{ "control-socket", &socket, NULL },
		{ "yes", NULL, &sure },
	};
	int r = read_options(argc, argv, words, ARRAY_LEN(words));
	char buf[BDF_STRLEN];
	struct bdf bdf;

	if (r != EXIT_DONE)
		return r;
	if (argc - optind != 1)
		return fail(EXIT_USAGE, "release: expected one PCI address (dddd:bb:dd.f)");
	if (bdf_parse(argv[optind], &bdf) < 0)
		return fail(EXIT_USAGE, "release: '%s' is not a PCI address (dddd:bb:dd.f)",
			    argv[optind]);
	ask.vf = bdf_format(bdf, buf);
	if (!sure)
		return fail(
			EXIT_REFUSED,
			"release %s: railmated would give this VF to the next container even while a process uses it: see who holds it (railmatectl explain vf %s), end its processes, then repeat with --yes",
			ask.vf, ask.vf);
	r = control_ask(socket, &ask, ASK_TIMEOUT_MS, a, &reply, &err);
	if (r < 0)
		return fail(r == -ENOENT || r == -EBUSY ? EXIT_REFUSED : EXIT_FAILED, "%s",
			    err.msg);
	return EXIT_DONE;
}
