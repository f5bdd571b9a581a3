/* room: config */
/* Any bytes as a file of hints: read, or one sentence that names the file; a machine is looked at
 * with what was read. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "support/topocheck.h"
#include "topo/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_with(const struct topo_hints *hints)
{
	struct hw_inventory *inv = synth_inventory("hyper flat root:2 gpu:1 nopf pf:1 vf:1");
	struct topo *topo = topo_new(inv, hints);

	topo_check(topo, inv);
	topo_free(topo);
	hw_inventory_free(inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *cfg = config_default();
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct err err = { 0 };

	if (config_parse_hints((const char *)data, size, "hints.json", cfg, &also, &err) == 0) {
		assert(cfg->hints && cfg->hints->n_groups);
		look_with(cfg->hints);
	} else {
		assert(!cfg->hints && str_starts(err.msg, "hints.json") && !strchr(err.msg, '\n'));
	}
	config_free(cfg);
	return 0;
}
