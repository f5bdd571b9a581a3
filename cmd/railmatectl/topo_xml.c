/* railmatectl topo --nccl-xml: the topology file of this machine, whether or not railmated would
 * use it. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "render/topofile.h"

int topo_xml(const struct machine *m, bool rccl, struct strbuf *out)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	const struct topofile_in in = topofile_in(m->node, rccl ? 2 : 1);
	struct topofile_out file;
	struct err err = { 0 };
	bool needed;

	if (topofile_render(&in, arena, &file, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	for (size_t i = 0; i < file.n_notes; i++)
		fail(0, "%s", file.notes[i]);
	needed = topofile_needed(&in, &why);
	fail(0, "topologyFile \"auto\" would %s this file: %s", needed ? "use" : "not use",
	     strbuf_str(&why));
	strbuf_puts(out, file.text);
	return EXIT_DONE;
}
