/* room: grant */
/*
 * Any text as a CDI spec or a map.json that is there when the daemon starts: it is read or it is
 * not, and what was read of a spec is what a spec written anew says.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "grant/grant-internal.h"
#include "render/cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct claims *r)
{
	assert(r->n && r->owner.ns && r->owner.pod && r->owner.uid && r->owner.container);
	for (size_t i = 0; i < r->n; i++)
		assert(r->v[i].vf && *r->v[i].vf);
}

static const struct item *parse(const char *text, struct arena *a)
{
	const struct item *top = NULL;
	struct err err = { 0 };

	return document_parse(text, strlen(text), "record", a, &top, &err) < 0 ? NULL : top;
}

static bool is_text(const char *s)
{
	return str_utf8_valid(s, strlen(s));
}

static void check_again(const struct claims *r, struct arena *a)
{
	const struct edits edits = grant_claims_to_spec(r, a);
	const struct item *top =
		parse(render_cdi(&edits, &(struct cdi_entry) { .slot = "s" }, 1, a), a);
	struct claims again;

	assert(top && grant_claims_of_spec(top, &again, a));
	assert(again.n == r->n && str_eq(again.owner.uid, r->owner.uid));
	assert(str_eq(again.owner.ns, r->owner.ns) && str_eq(again.owner.pod, r->owner.pod));
	assert(str_eq(again.owner.container, r->owner.container));
	for (size_t i = 0; i < r->n; i++) {
		assert(str_eq(again.v[i].slot, r->v[i].slot) && str_eq(again.v[i].vf, r->v[i].vf));
		assert(again.v[i].number == r->v[i].number);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const char *text = arena_printf(a, "%.*s", (int)size, (const char *)data);
	const struct item *top = parse(text, a);
	struct claims r;

	if (!top)
		return 0;
	if (grant_claims_of_map(top, &r, a))
		check_record(&r);
	if (grant_claims_of_spec(top, &r, a)) {
		check_record(&r);
		if (is_text(text))
			check_again(&r, a);
	}
	return 0;
}
