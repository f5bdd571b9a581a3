#include "ask_ledger.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "control/control.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
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
