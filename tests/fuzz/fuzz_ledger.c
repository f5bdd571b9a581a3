/* room: ledger */
/* Any bytes as a ledger's file, as they are and under a head whose checksum fits them: a ledger
 * that is written as it was read, or one sentence. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "ledger/ledger-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is a ledger like any other: its text is read again, and is the same then. */
static void check_ledger(const struct ledger *l)
{
	_cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct ledger *again = NULL;
	struct err err = { 0 };
	int r;

	for (size_t i = 0; i < ledger_holds(l); i++)
		assert(ledger_find(l, ledger_hold_at(l, i)->vf) == ledger_hold_at(l, i));
	ledger_write(l, &first);
	r = ledger_read(first.s, first.len, "again", &again, &err);
	assert(r == 0);
	ledger_write(again, &second);
	assert(!strcmp(first.s, second.s));
	ledger_free(again);
}

static void check(const char *text, size_t len)
{
	struct ledger *l = NULL;
	struct err err = { 0 };
	int r = ledger_read(text, len, "ledger.json", &l, &err);

	if (r < 0) {
		assert((r == -EBADMSG || r == -ENOTSUP) && err.code == -r && !l);
		assert(str_starts(err.msg, "ledger.json:") && !strchr(err.msg, '\n'));
		assert(str_utf8_valid(err.msg, strlen(err.msg)));
		return;
	}
	check_ledger(l);
	ledger_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	strbuf_add(&text, (const char *)data, size);
	check(strbuf_str(&text), size);
	strbuf_done(&text);
	strbuf_printf(&text, LEDGER_HEAD "%016llx" LEDGER_HEAD_END,
		      (unsigned long long)str_checksum(data, size));
	strbuf_add(&text, (const char *)data, size);
	check(text.s, text.len);
	return 0;
}
