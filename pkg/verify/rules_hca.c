/* The HCAs that NCCL has found, and those that it does not use for GPU Direct RDMA. */
#include <string.h>

#include "base/mem.h"
#include "verify/rules-internal.h"

static struct hca *add_hca(struct proc *p, const char *name, size_t len, uint64_t dev)
{
	struct hca *h;
	static const char end[] = "_dma";

	if (p->n_hcas == VERIFY_MAX_DEVS || len >= MAX_NAME || dev >= VERIFY_MAX_DEVS)
		return NULL;
	p->hcas = xgrow(p->hcas, &p->cap_hcas, p->n_hcas + 1, sizeof(*p->hcas));
	h = &p->hcas[p->n_hcas++];
	*h = (struct hca) { .dev = (unsigned)dev };
	memcpy(h->name, name, len);
	/* "mlx5_4_dma": the Data Direct function of mlx5_4 (2.27 and newer), which NCCL_IB_HCA and
	 * the map call mlx5_4. */
	for (char *at = h->name; (at = strstr(at, end));) {
		size_t n = strlen(end);

		if (at == h->name || at[-1] == '+' || (at[n] && at[n] != '+'))
			at += n;
		else
			memmove(at, at + n, strlen(at + n) + 1);
	}
	return h;
}

/* "mlx5_0:1[:rail[:plane]]/RoCE" */
static bool skip_hca(const char **p, struct proc *proc, uint64_t dev)
{
	const char *name = *p;
	size_t len = strcspn(name, ":/ ,}");
	uint64_t port = 0;
	struct hca *h;

	*p += len;
	if (!len || !skip(p, ":") || !skip_number(p, 10, &port))
		return false;
	*p += strspn(*p, ":-0123456789");
	if (!skip(p, "/") || !(skip(p, "IB") || skip(p, "RoCE")))
		return false;
	skip(p, "/SHARP");
	h = add_hca(proc, name, len, dev);
	if (h)
		h->port = (unsigned)port;
	return true;
}

/* 2.20 to 2.23: "{[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}": fused. */
static bool skip_group(const char **p, struct proc *proc, uint64_t dev, unsigned *ret_members)
{
	uint64_t index;

	*ret_members = 0;
	if (!skip(p, "={"))
		return ++*ret_members, skip_hca(p, proc, dev);
	while (skip(p, "[") && skip_number(p, 10, &index) && skip(p, "]")) {
		skip(p, " ");
		if (!skip_hca(p, proc, dev))
			return false;
		++*ret_members;
		skip(p, ", ");
	}
	return skip(p, "}");
}

void rule_using(struct verify *v, const struct record *r)
{
	const char *p = r->text + strlen("NET/IB : Using");
	const char *oob = strstr(p, "OOB ");
	size_t len = strlen(p), n = 0;
	unsigned members;
	uint64_t dev;

	/* The last HCA is whole where the out-of-band interface follows, or where a manual leaves
	 * it away. */
	if (!r->whole || !(oob || (len > 3 && !strcmp(p + len - 3, "/IB")) ||
			   (len > 6 && !strcmp(p + len - 6, "/SHARP")) ||
			   (len > 5 && !strcmp(p + len - 5, "/RoCE"))))
		return;
	verify_ground(v, GROUND_USING, r->text);
	if (!r->proc)
		return;
	/* What stands in a "Using" line replaces the one of an earlier communicator; fused HCAs
	 * have lines of their own. */
	for (size_t i = 0; i < r->proc->n_hcas; i++) {
		if (r->proc->hcas[i].fused)
			r->proc->hcas[n++] = r->proc->hcas[i];
	}
	r->proc->n_hcas = n;
	r->proc->using_source = v->source;
	r->proc->using_line = v->line;
	while (*p == ' ')
		p++;
	while (skip(&p, "[") && skip_number(&p, 10, &dev) && skip(&p, "]") &&
	       skip_group(&p, r->proc, dev, &members)) {
		if (members > 1)
			verify_saw(v, SIGN_FUSED, r->text);
		while (*p == ' ')
			p++;
	}
	if (oob)
		verify_bootstrap(v, r, oob + strlen("OOB "));
}

/* "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2" */
void rule_virtual(struct verify *v, const struct record *r)
{
	const char *name = strstr(r->text, "name=");
	uint64_t dev, members;
	struct hca *h;

	if (!name || !number_after(r->text, "device [", 10, &dev) ||
	    !number_after(r->text, "ndevs=", 10, &members))
		return;
	if (members < 2)
		return;
	verify_saw(v, SIGN_FUSED, r->text);
	if (r->proc && dev < VERIFY_MAX_DEVS && number_after(r->text, " speed=", 10, &members) &&
	    members < UINT32_MAX)
		r->proc->speed_mbps[dev] = (uint32_t)members;
	name += strlen("name=");
	h = r->proc ? add_hca(r->proc, name, strcspn(name, " "), dev) : NULL;
	if (h)
		h->fused = true;
}

/* "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", a plugin's name in the place of IB. */
void rule_gdr_of_hca(struct verify *v, const struct record *r)
{
	uint64_t dev;

	if (!strstr(r->text, "RDMA Disabled") || !number_after(r->text, "for HCA ", 10, &dev) ||
	    dev >= VERIFY_MAX_DEVS)
		return;
	*(r->proc ? &r->proc->gdr_disabled : &v->bare_disabled) |= UINT64_C(1) << dev;
	verify_ground(v, GROUND_WHY, r->text);
}

/* "… Disabled for GPU 1b000 / HCA 2 (distance 8 > 5)"; 2.29: "… for GPU/0-1b000 (rank 3) - NET/0-2
 * (distance 8 > 5)". */
void rule_gdr_of_gpu(struct verify *v, const struct record *r)
{
	struct gpu *g = record_gpu(v, r);
	uint64_t dev, distance, limit, rank, bus;
	const char *p = strstr(r->text, "(distance "), *net = strstr(r->text, "NET/");

	if (!g || !p || !strstr(r->text, "RDMA Disabled"))
		return;
	if (number_after(r->text, "for GPU ", 16, &bus) && g->bus && bus != g->bus)
		return;
	if (number_after(r->text, "(rank ", 10, &rank) && g->rank >= 0 && rank != (uint64_t)g->rank)
		return;
	p += strlen("(distance ");
	if (!skip_number(&p, 10, &distance) || !skip(&p, " > ") || !skip_number(&p, 10, &limit))
		return;
	if (!number_after(r->text, "HCA ", 10, &dev) && !(net && number_after(net, "-", 10, &dev)))
		return;
	if (dev >= 64)
		return;
	g->far_devs |= UINT64_C(1) << dev;
	g->far_distance = (unsigned)distance;
	g->far_limit = (unsigned)limit;
	verify_ground(v, GROUND_WHY, r->text);
}
