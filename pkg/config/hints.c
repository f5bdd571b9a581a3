#include "config/hints.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "topo/hints.h"

#define GROUPS_MAX    256
#define ADDRESSES_MAX 4096 /* of all groups */
#define NODE_MAX      4095

/* An address and where it stands. */
struct seen {
	struct bdf bdf;
	int line;
};

/* The readers get the parse only; it comes first. */
struct hints_parse {
	struct parse p;
	struct seen *seen; /* ADDRESSES_MAX */
	size_t n_seen;
};

static int one_address(struct parse *p, const struct item *value, void *ret_element)
{
	struct hints_parse *h = (struct hints_parse *)p;
	struct bdf bdf;
	int r = want(p, value, ITEM_STRING);

	if (r < 0)
		return r;
	if (bdf_parse(value->string, &bdf) < 0)
		return refuse(p, value, "'%s' is not a PCI address such as 0001:00:00.0",
			      shown(p, value));
	for (size_t i = 0; i < h->n_seen; i++) {
		if (!bdf_cmp(h->seen[i].bdf, bdf))
			return refuse(p, value, "'%s' stands in line %d already", shown(p, value),
				      h->seen[i].line);
	}
	if (h->n_seen == ADDRESSES_MAX)
		return refuse(p, value, "more than %d addresses", ADDRESSES_MAX);
	h->seen[h->n_seen++] = (struct seen) { bdf, value->line };
	*(struct bdf *)ret_element = bdf;
	return 0;
}

static int read_whole(struct parse *p, const struct item *value, int min, int max, int *ret)
{
	int r = want(p, value, ITEM_NUMBER);

	if (r < 0)
		return r;
	if (!value->whole || value->number < min || value->number > max)
		return refuse(p, value, "must be a whole number from %d to %d", min, max);
	*ret = (int)value->number;
	return 0;
}

static int read_node(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	(void)key;
	return read_whole(p, value, 0, NODE_MAX, &((struct topo_group *)out)->numa);
}

static int one_group(struct parse *p, const struct item *value, void *ret_element)
{
	static const struct key keys[] = {
		KEY_LIST("gpus", struct topo_group, gpus, one_address),
		KEY_LIST("nics", struct topo_group, nics, one_address),
		{ .name = "numa", .read = read_node },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct topo_group *g = ret_element;
	int r;

	g->numa = -1;
	r = read_members(p, value, &set, g);
	if (r < 0)
		return r;
	if (!g->n_gpus || !g->n_nics)
		return refuse(p, value, "needs at least one address in 'gpus' and one in 'nics'");
	return 0;
}

static int read_groups(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	if (value->type == ITEM_LIST && value->n_kids > GROUPS_MAX)
		return refuse(p, value, "has %zu groups; at most %d are read", value->n_kids,
			      GROUPS_MAX);
	return read_list(p, value, key, out);
}

/* PCIe generations 3 to 6; in hints as in hw_pci. */
static int read_link_speed(struct parse *p, const struct item *value, const struct key *key,
			   void *out)
{
	struct topo_hints *hints = out;
	int gts = 0, r = read_whole(p, value, 8, 64, &gts);

	(void)key;
	if (r < 0)
		return r;
	if (gts & (gts - 1))
		return refuse(p, value, "must be 8, 16, 32 or 64, in GT/s");
	hints->link_mts = gts * 1000;
	return 0;
}

static int read_link_width(struct parse *p, const struct item *value, const struct key *key,
			   void *out)
{
	(void)key;
	return read_whole(p, value, 1, 32, &((struct topo_hints *)out)->link_width);
}

static int read_hints(struct parse *p, const struct item *document, void *ret_hints)
{
	static const struct key keys[] = {
		{ .name = "groups",
		  .read = read_groups,
		  LIST_OF(struct topo_hints, groups, one_group) },
		{ .name = "linkSpeed", .read = read_link_speed },
		{ .name = "linkWidth", .read = read_link_width },
	};
	static const struct key_set set = { .keys = keys, .n = ARRAY_LEN(keys) };
	struct topo_hints *hints = ret_hints;
	int r = read_members(p, document, &set, hints);

	if (r == 0 && !hints->n_groups)
		r = refuse(p, document, "'groups' must list at least one group");
	return r;
}

int config_parse_hints(const char *text, size_t len, const char *name, struct config *cfg,
		       struct strbuf *also, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	struct topo_hints *hints = arena_alloc(cfg->arena, sizeof(*hints));
	struct hints_parse h = { .p = { .name = name, .out = cfg->arena, .scratch = scratch },
				 .seen = arena_array(scratch, ADDRESSES_MAX, sizeof(struct seen)) };
	int r = read_file_text(&h.p, text, len, HINTS_BYTES_MAX, read_hints, hints, also, err);

	if (r < 0)
		return r;
	hints->source = arena_strdup(cfg->arena, name);
	cfg->n_warnings =
		append_sentences(cfg->arena, &h.p.warnings, &cfg->warnings, cfg->n_warnings);
	cfg->hints = hints;
	return 0;
}
