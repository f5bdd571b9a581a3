/* PFs of one model: firmware and boards. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/net-internal.h"

static const struct diagnosis_advice firmware_mixed = {
	"Cards of one model with different firmware differ in GID tables, congestion control and limits: what works on one rail may not on another.",
	{ "Bring them to the same release (mlxfwmanager, mstflint, or the vendor's tool)." },
};
static const struct diagnosis_advice firmware_boards = {
	"Cards of one model on different boards may differ in ports, speed and firmware settings.",
	{ "Nothing if it is meant; else use boards of one part number." },
};

typedef const char *text_of(const struct facts_rdma *d);

static const char *firmware_of(const struct facts_rdma *d)
{
	return d->fw_ver;
}

static const char *board_of(const struct facts_rdma *d)
{
	return d->board_id;
}

/* Lists "28.39.1002 (0000:17:00.0), …" of a model, if there are different ones. */
static bool compare_model(const struct facts *f, struct diagnosis *r, const struct hw_pci *model,
			  text_of *text, const struct diagnosis_advice *advice, const char *what)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	const char *first = NULL;
	bool differ = false;

	for (size_t i = 0; i < f->n_nic; i++) {
		int pci = f->nic[i], rdma = net_pf_rdma(f, pci);
		const char *value = rdma < 0 ? NULL : text(&f->net->rdma[rdma]);

		if (!value || !net_same_model(&f->inv->pci[pci], model))
			continue;
		differ |= first && strcmp(first, value) != 0;
		first = first ? first : value;
		net_add(&list, value);
		strbuf_printf(&list, " (%s)", facts_address(f, pci));
	}
	if (differ)
		diagnosis_add(r, DIAGNOSIS_WARN, advice, "host",
			      "PFs %04x:%04x have different %s: %s.", model->vendor, model->device,
			      what, strbuf_str(&list));
	return differ;
}

static void run_firmware(const struct facts *f, struct diagnosis *r)
{
	bool differ = false;
	size_t known = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		const struct hw_pci *model = &f->inv->pci[f->nic[i]];
		int rdma = net_pf_rdma(f, f->nic[i]);
		size_t k = 0;

		known += rdma >= 0 && f->net->rdma[rdma].fw_ver;
		while (!net_same_model(&f->inv->pci[f->nic[k]], model))
			k++;
		if (k < i)
			continue; /* compared with the first of its model */
		differ |= compare_model(f, r, model, firmware_of, &firmware_mixed, "firmware");
		differ |= compare_model(f, r, model, board_of, &firmware_boards, "boards");
	}
	if (known > 1 && !differ)
		diagnosis_fine(r, "PFs of one model have the same firmware and board.");
}

const struct diagnosis_check doctor_firmware_checks[] = {
	{ "firmware", "firmware and boards of PFs",
	  "WARN: PFs of one model with different firmware, or boards of different part numbers.",
	  .run = run_firmware },
};
const size_t doctor_firmware_checks_n = ARRAY_LEN(doctor_firmware_checks);
