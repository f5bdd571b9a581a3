/* railmatectl topo --svg: the machine as a picture, with the pods that hold VFs where that can be
 * known. */
#include <stdlib.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "draw/draw.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "railmatectl.h"

/* What the container really has, once that is known; before, what its VFs were chosen for. */
static struct draw_hold hold_of(const struct ledger *l, const struct ledger_hold *h)
{
	const struct ledger_decision *d = ledger_decision(l, h->decision);
	struct draw_hold hold = { .vf = h->vf,
				  .ns = h->owner.ns,
				  .pod = h->owner.pod,
				  .uid = h->owner.uid,
				  .draining = h->draining };

	if (d && d->checked) {
		hold.gpus = d->real_gpus;
		hold.n_gpus = d->n_real_gpus;
	} else if (d && d->known == LEDGER_GPUS_KNOWN) {
		hold.gpus = d->gpus;
		hold.n_gpus = d->n_gpus;
	}
	return hold;
}

static void find_holds(const struct ledger *l, struct arena *a, struct draw_in *in)
{
	struct draw_hold *holds = arena_array(a, ledger_holds(l), sizeof(*holds));

	for (size_t i = 0; i < ledger_holds(l); i++)
		holds[i] = hold_of(l, ledger_hold_at(l, i));
	in->holds = holds;
	in->n_holds = ledger_holds(l);
	in->holds_known = true;
}

void topo_svg(const struct machine *m, const struct ledger_source *holders, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	const struct hw_inventory *inv = m->node->inv;
	const char **names = arena_array(a, inv->n_gpu, sizeof(*names));
	struct draw_in in = { .inv = inv, .topo = m->node->topo, .gpu_names = names };
	struct ledger_answer answer = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < inv->n_gpu; i++)
		names[i] = gpu_name(m, &inv->gpu[i], a);
	if (holders && ask_ledger(holders, a, &answer, &err) < 0)
		fail(0, "the picture does not show who holds VFs: %s", err.msg);
	if (answer.ledger)
		find_holds(answer.ledger, a, &in);
	draw_svg(&in, out);
	ledger_free(answer.ledger);
}
