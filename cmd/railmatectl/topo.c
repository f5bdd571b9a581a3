/* railmatectl topo. */
#include <string.h>

#include "ask_ledger.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "railmatectl.h"

int cmd_topo(int argc, char **argv)
{
	_cleanup_(machine_close) struct machine m = { .root_path = "/" };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	bool json = false, svg = false, xml = false, rccl = false, wide = false, foreign;
	struct ledger_source source = { 0 };
	const struct word words[] = {
		{ "root", &m.root_path, NULL },
		{ "config", &m.config_path, NULL },
		{ "topology-hints", &m.hints_path, NULL },
		{ "json", NULL, &json },
		{ "svg", NULL, &svg },
		{ "control-socket", &source.socket, NULL },
		{ "state-dir", &source.state_dir, NULL },
		{ "nccl-xml", NULL, &xml },
		{ "rccl", NULL, &rccl },
		{ "wide", NULL, &wide },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	if (json + svg + xml > 1)
		return fail(EXIT_USAGE,
			    "--json, --svg and --nccl-xml exclude each other: one at a time");
	if (rccl && !xml)
		return fail(EXIT_USAGE, "--rccl is for --nccl-xml");
	if (wide && json + svg + xml)
		return fail(EXIT_USAGE, "--wide is for text, not for --json, --svg or --nccl-xml");
	if ((source.socket || source.state_dir) && !svg)
		return fail(EXIT_USAGE, "--control-socket and --state-dir are for --svg");
	r = machine_open(&m);
	if (r == EXIT_DONE && xml)
		r = topo_xml(&m, rccl, &out);
	if (r != EXIT_DONE)
		return r;
	/* --root names another machine: the daemon of this one is asked of it only if it is named,
	 * too. */
	foreign = !source.socket && !source.state_dir && strcmp(m.root_path, "/") != 0;
	source.socket = source.socket ? source.socket : CONTROL_SOCKET;
	source.state_dir = source.state_dir ? source.state_dir : STATE_DIR;
	if (svg)
		topo_svg(&m, foreign ? NULL : &source, &out);
	else if (json)
		topo_json(&m, &out);
	else if (!xml)
		topo_text(&m, wide, &out);
	return print_out(&out);
}
