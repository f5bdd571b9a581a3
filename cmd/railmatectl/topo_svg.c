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

/* The holders, with the GPUs that the container really has, once that is known; before, those that
 * its VFs were chosen for. In the arena, with strings of the ledger, which stays as it is. */
static size_t holds_of(const struct ledger *l, struct arena *a, const struct draw_hold **ret)
{
	struct draw_hold *v = arena_array(a, ledger_holds(l), sizeof(*v));

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *h = ledger_hold_at(l, i);
		const struct ledger_decision *d = ledger_decision_read(l, h->decision, a);

		v[i] = (struct draw_hold) { .vf = h->vf,
					    .ns = h->owner.ns,
					    .pod = h->owner.pod,
					    .uid = h->owner.uid,
					    .draining = h->draining };
		if (d && d->checked) {
			v[i].gpus = d->real_gpus;
			v[i].n_gpus = d->n_real_gpus;
		} else if (d && d->known == LEDGER_GPUS_KNOWN) {
			v[i].gpus = d->gpus;
			v[i].n_gpus = d->n_gpus;
		}
	}
	*ret = v;
	return ledger_holds(l);
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
	in.holds_known = answer.ledger != NULL;
	if (answer.ledger)
		in.n_holds = holds_of(answer.ledger, a, &in.holds);
	draw_svg(&in, out);
	ledger_free(answer.ledger);
}
