/* Questions to railmated: its ledger, which its disk has as well, a VF's release, and whether it is
 * ready. */
#include "ask_ledger.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "hw/bdf.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "load/load.h"
#include "railmatectl.h"

#define ASK_TIMEOUT_MS 5000

static int ask_daemon(const char *socket, struct arena *a, struct ledger_answer *ret,
		      struct err *err)
{
	const struct control_request ask = { .op = CONTROL_LEDGER };
	struct control_reply reply;
	int r;

	if (str_eq(socket, "none"))
		return err_set(err, ECONNREFUSED, "railmated was not asked");
	r = control_ask(socket, &ask, ASK_TIMEOUT_MS, a, &reply, err);
	if (r < 0)
		return r;
	if (!reply.ledger)
		return err_set(err, EBADMSG, "railmated's reply holds no ledger");
	ret->from = arena_printf(a, "railmated at %s", socket);
	ret->running = true;
	return ledger_read(reply.ledger, strlen(reply.ledger), "railmated's ledger", &ret->ledger,
			   err);
}

int ask_ledger(const struct ledger_source *source, struct arena *a, struct ledger_answer *ret,
	       struct err *err)
{
	struct ledger_answer answer = { 0 };
	struct err why = { 0 }, disk = { 0 };
	int r = ask_daemon(source->socket, a, &answer, err);

	if (r < 0 && (r == -ECONNREFUSED || r == -ETIMEDOUT || r == -ECONNRESET)) {
		why = *err;
		r = ledger_file_peek(source->state_dir, &answer.ledger, &disk);
		if (r == -ENOENT)
			return err_set(err, ENOENT, "%s; and there is no ledger in %s", why.msg,
				       source->state_dir);
		if (r < 0)
			return err_set(err, -r, "%s; and %s", why.msg, disk.msg);
		answer.from = arena_printf(a, "%s/ledger.json", source->state_dir);
		fail(0, "%s; this is what its ledger in %s says", why.msg, source->state_dir);
	}
	if (r == 0)
		*ret = answer;
	return r;
}

/* --- release: an operator's word that no container uses a VF any more --- */

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

/* --- ready: the probe that orders a rolling update --- */

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
