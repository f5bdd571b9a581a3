/* Paths through PCIe, the names of functions in sentences, and words of the kernel's command line.
 */
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "facts/facts.h"
#include "hw/inventory.h"

static size_t ancestors(const struct hw_inventory *inv, int pci, int ret[FACTS_PATH_MAX])
{
	size_t n = 0;

	for (int up = inv->pci[pci].parent; up >= 0 && n < FACTS_PATH_MAX; up = inv->pci[up].parent)
		ret[n++] = up;
	return n;
}

size_t facts_path(const struct hw_inventory *inv, int a, int b, int ret[FACTS_PATH_MAX],
		  int *ret_common)
{
	int of_a[FACTS_PATH_MAX], of_b[FACTS_PATH_MAX];
	size_t n_a = ancestors(inv, a, of_a), n_b = ancestors(inv, b, of_b), n = 0;

	*ret_common = -1;
	for (size_t i = 0; i < n_a && *ret_common < 0; i++) {
		if (list_has_int(of_b, n_b, of_a[i]))
			*ret_common = (int)n;
		ret[n++] = of_a[i];
	}
	for (size_t i = 0; i < n_b && n < FACTS_PATH_MAX && !list_has_int(ret, n, of_b[i]); i++)
		ret[n++] = of_b[i];
	return n;
}

size_t facts_nearest(const struct facts *f, int pci, int *ret, size_t max,
		     enum topo_class *ret_class)
{
	enum topo_class best = TOPO_CLASS_MAX;
	size_t n = 0;

	for (size_t i = 0; i < f->n_nic; i++) {
		enum topo_class c = topo_between(f->topo, pci, f->nic[i]).class;

		if (c < best) {
			best = c;
			n = 0;
		}
		if (c == best && n < max)
			ret[n++] = f->nic[i];
	}
	*ret_class = best;
	return n;
}

bool facts_is_board_nic(const struct hw_pci *p)
{
	/* ConnectX-7, -8, -9; not BlueField-3, which rdma_topo does not judge either. */
	static const uint16_t devices[] = { 0x1021, 0x1023, 0x1025 };

	for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
		if (p->vendor == 0x15b3 && p->device == devices[i] && !p->is_vf)
			return true;
	}
	return false;
}

/* --- names --- */

const char *facts_address(const struct facts *f, int pci)
{
	return hw_pci_address(f->inv, pci, f->arena);
}

const char *facts_gpu_name(const struct facts *f, size_t gpu)
{
	return arena_printf(f->arena, "GPU %s", facts_address(f, f->inv->gpu[gpu].pci));
}

const char *facts_nic_name(const struct facts *f, int pci)
{
	int rdma = hw_find_rdma(f->inv, pci);
	const char *name = rdma >= 0 ? f->inv->rdma[rdma].name : f->inv->pci[pci].netdev;

	if (!name)
		return arena_printf(f->arena, "NIC %s", facts_address(f, pci));
	return arena_printf(f->arena, "NIC %s (%s)", facts_address(f, pci), name);
}

bool facts_has_vendor(const struct facts *f, const char *vendor)
{
	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		if (str_eq(f->inv->gpu[i].vendor, vendor))
			return true;
	}
	return false;
}

size_t facts_n_memory_nodes(const struct hw_inventory *inv)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_numa; i++) {
		const char *map = inv->numa[i].cpumap;

		n += map && !map[strspn(map, "0,")];
	}
	return n;
}

/* --- the kernel's command line --- */

/* The next word from *at on; its length, 0 at the end. A quoted blank belongs to its word, as in
 * the kernel. */
static size_t next_word(const char **at)
{
	bool quoted = false;
	size_t len = 0;

	*at += strspn(*at, " \t\n");
	for (; (*at)[len] && (quoted || !strchr(" \t\n", (*at)[len])); len++)
		quoted ^= (*at)[len] == '"';
	return len;
}

enum facts_answer facts_boot_word(const struct facts_host *h, const char *word)
{
	size_t len;

	if (!h->cmdline)
		return FACTS_UNKNOWN;
	for (const char *at = h->cmdline; (len = next_word(&at)) > 0; at += len) {
		if (len == strlen(word) && !strncmp(at, word, len))
			return FACTS_YES;
	}
	return FACTS_NO;
}

/* Quotes around a word or a value are not the value's. */
const char *facts_boot_value(const struct facts *f, const char *key)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;
	size_t len, skip = strlen(key);
	bool found = false;

	if (!f->host.cmdline)
		return NULL;
	for (const char *at = f->host.cmdline; (len = next_word(&at)) > 0; at += len) {
		const char *word = at + (*at == '"');

		if (!str_starts(word, key) || word + skip > at + len)
			continue;
		found = true;
		if (all.len)
			strbuf_putc(&all, ',');
		for (const char *c = word + skip; c < at + len; c++) {
			if (*c != '"')
				strbuf_putc(&all, *c);
		}
	}
	return found ? arena_strdup(f->arena, strbuf_str(&all)) : NULL;
}

bool facts_boot_list_has(const struct facts *f, const char *key, const char *element)
{
	const char *list = facts_boot_value(f, key);
	size_t len = strlen(element);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (!strncmp(at, element, len) && strchr(",=:\"", at[len]))
			return true;
	}
	return false;
}
