/* What has to be so that the daemon may be relied on, in the form of the API server's
 * /readyz?verbose. */
#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"
#include "status/status-internal.h"

static bool put(struct strbuf *out, const char *what, const char *problem)
{
	if (problem)
		strbuf_printf(out, "[-]%s failed: %s\n", what, problem);
	else
		strbuf_printf(out, "[+]%s ok\n", what);
	return !problem;
}

bool status_write_ready(const struct status_facts *f, struct strbuf *out)
{
	const struct status_service *s = f->service;
	const struct status_machine *m = &f->machine;
	bool ok = put(out, "config", m->config_error ? m->config_error : m->config_left_out);

	if (!s)
		return put(
			out, "service",
			"nothing is served yet: the hardware is being scanned, or another railmated has not ended");
	for (size_t i = 0; i < s->n_pools; i++) {
		const struct status_pool *p = &s->pools[i];
		_cleanup_free_ char *what = xasprintf("registered %s", p->resource);

		if (p->served)
			ok &= put(out, what,
				  p->registered ? p->problem
						: "the kubelet does not watch its devices");
	}
	ok &= put(out, "records",
		  s->settled ? NULL : "not all records of earlier starts were read yet");
	ok &= put(out, "ledger",
		  s->ledger_failing ? "it cannot be written to disk"
		  : s->ledger_late  ? "the disk does not store it in time"
				    : NULL);
	return ok;
}
