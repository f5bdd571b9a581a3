/* The HCAs that NCCL has found, and those that it does not use for GPU Direct RDMA. */
#include <string.h>

#include "base/mem.h"
#include "verify/rules-internal.h"

/* "mlx5_4_dma": the Data Direct function of mlx5_4 (2.27 and newer), which NCCL_IB_HCA and the map
 * call mlx5_4. */
static void drop_dma(char *name)
{
	static const char end[] = "_dma";

	for (char *at = name; (at = strstr(at, end));) {
		size_t n = strlen(end);

		if (at == name || at[-1] == '+' || (at[n] && at[n] != '+'))
			at += n;
		else
			memmove(at, at + n, strlen(at + n) + 1);
	}
}

static struct hca *add_hca(struct proc *p, const char *name, size_t len, uint64_t dev)
{
	struct hca *h;

	if (p->n_hcas == VERIFY_MAX_DEVS || len >= MAX_NAME || dev >= VERIFY_MAX_DEVS)
		return NULL;
	p->hcas = xgrow(p->hcas, &p->cap_hcas, p->n_hcas + 1, sizeof(*p->hcas));
	h = &p->hcas[p->n_hcas++];
	*h = (struct hca) { .dev = (unsigned)dev };
	memcpy(h->name, name, len);
	drop_dma(h->name);
	return h;
}

/* What stands in a "Using" line replaces the one of an earlier communicator; fused HCAs have lines
 * of their own. */
static void forget_plain(struct proc *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_hcas; i++) {
		if (p->hcas[i].fused)
			p->hcas[n++] = p->hcas[i];
	}
	p->n_hcas = n;
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

static void read_hcas(struct verify *v, const struct record *r, struct proc *proc, const char *p)
{
	unsigned members;
	uint64_t dev;

	while (*p == ' ')
		p++;
	while (skip(&p, "[") && skip_number(&p, 10, &dev) && skip(&p, "]") &&
	       skip_group(&p, proc, dev, &members)) {
		if (members > 1)
			verify_saw(v, SIGN_FUSED, r->text);
		while (*p == ' ')
			p++;
	}
}

/* The last HCA is whole where the out-of-band interface follows, or where a manual leaves it away.
 */
static bool is_whole_list(const char *p)
{
	size_t n = strlen(p);

	return strstr(p, "OOB ") || (n > 3 && !strcmp(p + n - 3, "/IB")) ||
	       (n > 5 && !strcmp(p + n - 5, "/RoCE"));
}

void rule_using(struct verify *v, const struct record *r)
{
	const char *p = r->text + strlen("NET/IB : Using");

	if (!r->whole || !is_whole_list(p))
		return;
	verify_ground(v, GROUND_USING, r->text);
	if (!r->proc)
		return;
	forget_plain(r->proc);
	r->proc->using_source = v->source;
	r->proc->using_line = v->line;
	read_hcas(v, r, r->proc, p);
	if (strstr(p, "OOB "))
		verify_bootstrap(v, r, strstr(p, "OOB ") + strlen("OOB "));
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
	name += strlen("name=");
	h = r->proc ? add_hca(r->proc, name, strcspn(name, " "), dev) : NULL;
	if (h)
		h->fused = true;
}

/* "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", a plugin's name in the place of IB. */
void rule_gdr_of_hca(struct verify *v, const struct record *r)
{
	uint64_t dev;

	if (!r->proc || !strstr(r->text, "RDMA Disabled") ||
	    !number_after(r->text, "for HCA ", 10, &dev) || dev >= 64)
		return;
	r->proc->gdr_disabled |= UINT64_C(1) << dev;
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
