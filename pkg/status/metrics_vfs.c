/* Metrics of the VFs that containers have. */
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "pool/node.h"
#include "status/status-internal.h"
#include "topo/rails.h"
#include "topo/topo.h"

void status_put_vfs(struct writer *w, const struct metric *m)
{
	struct holder *v;
	size_t n = status_holders(w->f, w->a, &v);

	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *hold = v[i].hold;
		const struct pool_dev *dev = v[i].dev;
		int pf = dev && dev->pci >= 0 ? topo_place(w->f->node->topo, dev->pci) : -1;
		int rail = pf >= 0 ? topo_rails_of(w->f->node->rails, pf).rail : -1;
		char bdf[BDF_STRLEN];

		status_sample(&w->e, "");
		status_label(&w->e, "resource", hold->resource);
		status_label(&w->e, "vf", hold->vf);
		status_label(&w->e, "namespace", hold->owner.ns);
		status_label(&w->e, "pod", hold->owner.pod);
		status_label(&w->e, "container", hold->owner.container);
		status_label(&w->e, "state", v[i].state);
		status_label(&w->e, "pf",
			     pf < 0 && dev && dev->pf ? dev->pf->address
						      : status_device_address(w->f, pf, bdf));
		if (rail >= 0)
			status_label_int(&w->e, "rail", rail);
		else
			status_label(&w->e, "rail", "");
		status_label(&w->e, "rdma", hold->rdma ? hold->rdma : dev ? dev->rdma_name : NULL);
		status_label(&w->e, "gpu", v[i].gpus);
		status_label(&w->e, "class", v[i].class);
		status_count(&w->e, 1);
	}
}

static void begin(struct writer *w, const struct hw_vf_stats *s)
{
	char bdf[BDF_STRLEN];

	status_sample(&w->e, "");
	status_label(&w->e, "vf", status_device_address(w->f, s->pci, bdf));
}

void status_put_vf_traffic(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_vf_stats; i++) {
		const struct hw_vf_stats *s = &w->f->vf_stats[i];

		if (!s->has_traffic)
			continue;
		begin(w, s);
		status_count(&w->e, *(const uint64_t *)((const char *)s + m->field));
	}
}

void status_put_vf_counters(struct writer *w, const struct metric *m)
{
	for (size_t i = 0; i < w->f->n_vf_stats; i++) {
		const struct hw_vf_stats *s = &w->f->vf_stats[i];

		for (size_t k = 0; k < s->n_driver; k++) {
			begin(w, s);
			status_label(&w->e, "counter", s->driver[k].name);
			status_count(&w->e, s->driver[k].value);
		}
	}
}
