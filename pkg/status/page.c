/* The page for people. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "pool/node.h"
#include "status/stats.h"
#include "status/html-internal.h"
#include "status/status-internal.h"
#include "topo/rails.h"
#include "topo/topo.h"

#define DECISIONS 20

/* Names of classes differ from those of the picture (railmatectl topo --svg), whose style holds for
 * the whole page. */
static const char style[] =
	":root{color-scheme:light dark;--page:#fff;--ink:#1f2933;--pale:#52606d;--line:#cbd2d9;"
	"--good:#2b7a0b;--wrong:#b42318}"
	"@media(prefers-color-scheme:dark){:root{--page:#12171d;--ink:#dde3ea;--pale:#9aa5b1;"
	"--line:#3a4450;--good:#7bc65c;--wrong:#ff8a7a}"
	"main svg text{fill:#dde3ea}main svg .small{fill:#9aa5b1}"
	"main svg>rect{fill:#12171d}main svg .numa{fill:#1a2027;stroke:#3a4450}"
	"main svg .switch,main svg .port,main svg .free{fill:#12171d}main svg .gpu{fill:#17311a}"
	"main svg .nic{fill:#16263c}main svg .idle,main svg .none{fill:#20262d}"
	"main svg .pix{fill:#7bc65c}main svg .pxb,main svg .phb{fill:#e0b050}"
	"main svg .node,main svg .sys,main svg .bad{fill:#ff8a7a}"
	"main svg .cell,main svg .cell2{fill:#fff}}"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:1040px;padding:12px 16px 40px;"
	"background:var(--page);color:var(--ink);font:14px/1.45 system-ui,sans-serif}"
	"h1{font-size:20px;margin:8px 0}h2{font-size:15px;margin:22px 0 6px}"
	".wide{overflow-x:auto}.picture svg{display:block;min-width:760px;width:100%;height:auto}"
	"table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;"
	"padding:3px 12px 3px 0;border-bottom:1px solid var(--line);white-space:nowrap}"
	"th{color:var(--pale);font-weight:600}.number{text-align:right}"
	"td.sentence{white-space:normal;min-width:220px}"
	".good{color:var(--good)}.wrong{color:var(--wrong);font-weight:600}.pale{color:var(--pale)}"
	"a{color:inherit}ul{list-style:none;margin:0;padding:0}#age{float:right}"
	".findings li{padding:6px 0;border-bottom:1px solid var(--line)}"
	".findings p{margin:2px 0 2px 16px;overflow-wrap:anywhere}";

static const char script[] =
	"const every=5000;let heard=Date.now();"
	"async function again(){if(!document.hidden){try{"
	"const r=await fetch(location.href,{cache:'no-store'});"
	"if(!r.ok)throw new Error(r.status);"
	"const next=new DOMParser().parseFromString(await r.text(),'text/html');"
	"const here=document.querySelector('main'),there=next.querySelector('main');"
	"const at=[...here.querySelectorAll('.wide')].map(e=>e.scrollLeft);"
	"here.replaceWith(document.adoptNode(there));"
	"[...there.querySelectorAll('.wide')].forEach((e,i)=>e.scrollLeft=at[i]||0);"
	"heard=Date.now()}catch(e){}}"
	"const s=Math.round((Date.now()-heard)/1000),a=document.getElementById('age');"
	"a.textContent=s>every/500?'no answer for '+s+' s':'';a.className=s>every/500?'wrong':'';"
	"setTimeout(again,every)}setTimeout(again,every)";

const char *status_page_policy(const char *nonce, struct arena *a)
{
	return arena_printf(
		a,
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-%s'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		nonce);
}

/* --- the parts --- */

static void put_ready(const struct status_facts *f, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf lines = STRBUF_INIT;
	bool ready = status_write_ready(f, &lines);
	char *rest = lines.s, *line;

	strbuf_printf(out, "<p class=\"%s\">%s</p>\n<ul>", ready ? "good" : "wrong",
		      ready ? "ready" : "not ready");
	while ((line = strsep(&rest, "\n")) && *line) {
		if (line[1] == '+')
			continue;
		strbuf_puts(out, "<li class=\"wrong\">");
		status_html_text(out, line + 3);
		strbuf_puts(out, "</li>");
	}
	strbuf_puts(out, "</ul>\n");
	if (f->doctor)
		status_html_verdict(f->doctor, out);
}

static void put_picture(const struct status_facts *f, struct strbuf *out)
{
	strbuf_puts(out, "<section><h2>Machine</h2>");
	if (f->picture) {
		strbuf_printf(out, "<div class=\"wide picture\">\n%s</div>", f->picture);
	} else {
		strbuf_puts(out, f->picture_failure
					 ? "<p class=\"wrong\">No picture: "
					 : "<p class=\"pale\">The picture is being made.");
		status_html_text(out, f->picture_failure);
		strbuf_puts(out, "</p>");
	}
	strbuf_puts(out, "</section>\n");
}

static void put_best(const struct status_facts *f, const char *resource, struct strbuf *out)
{
	const struct stats_pool *s = NULL;
	uint64_t pairs = 0;

	for (size_t i = 0; f->service && !s && i < f->service->n_stats; i++) {
		if (str_eq(f->service->stats[i]->resource, resource))
			s = f->service->stats[i];
	}

	for (int c = 0; s && c < TOPO_CLASS_MAX; c++)
		pairs += s->pairs[c];
	strbuf_puts(out, "<td class=\"number\">");
	if (pairs)
		strbuf_printf(out, "%.1f %% of %" PRIu64,
			      100.0 * (double)s->pairs_best / (double)pairs, pairs);
	strbuf_puts(out, "</td>");
}

static void put_pool(const struct status_facts *f, const struct pool *pool, struct strbuf *out)
{
	uint64_t n[HOLDS_STATES] = { 0 };
	const char *problem = NULL;
	bool registered = false;

	for (size_t i = 0; f->service && i < f->service->n_pools; i++) {
		if (!str_eq(f->service->pools[i].resource, pool->cfg->resource))
			continue;
		registered = f->service->pools[i].registered;
		problem = f->service->pools[i].problem;
	}

	status_count_states(f, pool, n);
	strbuf_puts(out, "<tr>");
	status_html_cell(out, pool->cfg->resource);
	status_html_cell(out, status_binding(pool));
	strbuf_printf(out, "<td class=\"%s\">", registered && !problem ? "good" : "wrong");
	status_html_text(out, problem ? problem : registered ? "yes" : "no");
	strbuf_puts(out, "</td>");
	for (int s = HOLDS_STATES; s-- > 0;)
		status_html_number(out, n[s]);
	put_best(f, pool->cfg->resource, out);
	strbuf_puts(out, "</tr>\n");
}

static void put_pools(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = {
		"resource", "binding",	  "registered", ">free",
		">in use",  ">unhealthy", ">held",	">allocated",
		">leaving", ">retired",	  ">draining",	">GPU-VF pairs at their best class"
	};

	status_html_table(out, "Resources", columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < f->node->n_pools; i++)
		put_pool(f, &f->node->pools[i], out);
	for (size_t i = 0; i < f->node->n_shared; i++)
		put_pool(f, &f->node->shared[i], out);
	status_html_end(out);
}

static void put_unhealthy(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = { "resource", "device", "reason" };
	bool any = false;

	for (size_t i = 0; i < f->node->n_pools; i++) {
		const struct pool *pool = &f->node->pools[i];

		for (size_t k = 0; k < pool->n_devs; k++) {
			const char *id = pool->devs[k].id, *reason = pool->devs[k].reason;

			if (pool->devs[k].healthy)
				continue;
			if (!any)
				status_html_table(out, "Unhealthy devices", columns,
						  ARRAY_LEN(columns));
			any = true;
			strbuf_puts(out, "<tr>");
			status_html_cell(out, pool->cfg->resource);
			status_html_cell(out, id);
			strbuf_puts(out, "<td class=\"sentence wrong\">");
			/* Without the address, which has a column of its own. */
			if (str_starts(reason, id) && str_starts(reason + strlen(id), ": "))
				reason += strlen(id) + 2;
			status_html_text(out, reason);
			strbuf_puts(out, "</td></tr>\n");
		}
	}
	if (any)
		status_html_end(out);
}

/* --- ports --- */

static uint64_t counter(const struct hw_port_stats *s, const char *name)
{
	for (size_t i = 0; i < s->n_standard; i++) {
		if (str_eq(s->standard[i].name, name))
			return s->standard[i].value;
	}
	return 0;
}

static const struct hw_port *port_of(const struct hw_rdma *rdma, int number)
{
	for (size_t i = 0; rdma && i < rdma->n_ports; i++) {
		if (rdma->ports[i].number == number)
			return &rdma->ports[i];
	}
	return NULL;
}

/* NULL: no pool has devices of the PF. */
static const struct status_link *link_of(const struct hw_port_stats *s, const struct hw_port *port,
					 const struct status_link *links, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (links[i].pf->pci == s->pci && links[i].port == port)
			return &links[i];
	}
	return NULL;
}

static const char *state_of(const struct status_facts *f, const struct hw_port_stats *s,
			    const struct hw_port *port)
{
	static const char *const carrier[] = { "unknown", "down", "up" };

	if (port)
		return port->state ? port->state : "unknown";
	return carrier[f->node->inv->pci[s->pci].carrier + 1];
}

static const struct hw_rdma *rdma_of(const struct status_facts *f, const struct hw_port_stats *s)
{
	return s->rdma < 0 ? NULL : &f->node->inv->rdma[s->rdma];
}

static void put_port(const struct status_facts *f, const struct hw_port_stats *s,
		     const struct status_link *link, struct strbuf *out)
{
	static const char *const errors[] = { "symbol_error", "port_rcv_errors",
					      "port_xmit_discards", "link_downed" };
	const struct hw_rdma *rdma = rdma_of(f, s);
	const struct hw_port *port = port_of(rdma, s->port);
	int rail = topo_rails_of(f->node->rails, s->pci).rail;
	char bdf[BDF_STRLEN];

	strbuf_puts(out, "<tr>");
	status_html_cell(out, status_device_address(f, s->pci, bdf));
	strbuf_puts(out, "<td>");
	if (rdma) {
		status_html_text(out, rdma->name);
		strbuf_printf(out, ":%d", s->port);
	}
	strbuf_puts(out, "</td>");
	status_html_cell(out, rdma ? rdma->netdev : f->node->inv->pci[s->pci].netdev);
	strbuf_puts(out, "<td class=\"number\">");
	if (rail >= 0)
		strbuf_put_int(out, rail);
	strbuf_printf(out, "</td><td class=\"%s\">", !link ? "" : link->wrong ? "wrong" : "good");
	status_html_text(out, state_of(f, s, port));
	if (link && link->wrong && !link->down) {
		strbuf_puts(out, ", ");
		status_html_text(out, link->wrong);
	}
	strbuf_puts(out, "</td><td class=\"number\">");
	if (port && port->rate_mbps)
		hw_put_rate(port->rate_mbps, out);
	strbuf_puts(out, "</td>");
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		status_html_number(out, counter(s, errors[i]));
	strbuf_puts(out, "</tr>\n");
}

/* Ports that are not well come first. */
static void put_ports(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = {
		"PF",	 "port",	   "interface",	      ">rail",	   "state",
		">rate", ">symbol errors", ">receive errors", ">discards", ">link down"
	};

	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct status_link *links;
	size_t n = status_links(f->node, a, &links);

	if (!f->n_ports)
		return;
	status_html_table(out, "Ports", columns, ARRAY_LEN(columns));
	for (int well = 0; well < 2; well++) {
		for (size_t i = 0; i < f->n_ports; i++) {
			const struct hw_port_stats *s = &f->ports[i];
			const struct status_link *link =
				link_of(s, port_of(rdma_of(f, s), s->port), links, n);

			if ((!link || !link->wrong) == well)
				put_port(f, s, link, out);
		}
	}
	status_html_end(out);
}

/* --- links --- */

/* "3 min", "2 h": how long ago. */
static void put_age(const struct status_facts *f, int64_t ms, struct strbuf *out)
{
	int64_t s = (f->now_ms - ms) / 1000;

	strbuf_puts(out, "<td class=\"number\">");
	if (!ms || s < 0)
		;
	else if (s < 120)
		strbuf_printf(out, "%" PRId64 " s", s);
	else if (s < 7200)
		strbuf_printf(out, "%" PRId64 " min", s / 60);
	else if (s < 172800)
		strbuf_printf(out, "%" PRId64 " h", s / 3600);
	else
		strbuf_printf(out, "%" PRId64 " days", s / 86400);
	strbuf_puts(out, "</td>");
}

static void put_list(const char *const *v, size_t n, struct strbuf *out)
{
	strbuf_puts(out, "<td class=\"sentence\">");
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(out, i ? ", " : "");
		status_html_text(out, v[i]);
	}
	strbuf_puts(out, "</td>");
}

static void put_pods_of(const struct status_facts *f, const char *pf, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const char *const *pods;
	size_t n = status_pods_of(f, pf, a, &pods);

	put_list(pods, n, out);
}

static void put_degraded(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = {
		"PF", "resource", "its link", "VFs healthy", ">for", "pods that hold its VFs"
	};

	if (!f->node->n_links)
		return;
	status_html_table(out, "Degraded links", columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < f->node->n_links; i++) {
		const struct node_link *l = &f->node->links[i];

		strbuf_puts(out, "<tr>");
		status_html_cell(out, l->pf);
		status_html_cell(out, l->resource);
		strbuf_puts(out, "<td class=\"sentence wrong\">");
		status_html_text(out, l->degraded);
		strbuf_puts(out, "</td>");
		status_html_cell(out, l->unhealthy ? "no" : "yes");
		put_age(f, l->since_ms, out);
		put_pods_of(f, l->pf, out);
		strbuf_puts(out, "</tr>\n");
	}
	status_html_end(out);
}

static void put_missing(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = { "PF", "interface", "state",
					       "pods that hold its VFs" };
	size_t n = 0;

	for (size_t i = 0; i < f->node->n_pfs; i++) {
		const struct node_pf *pf = &f->node->pfs[i];

		if (!pf->missing || !pf->wanted)
			continue;
		if (!n++)
			status_html_table(out, "Missing PFs", columns, ARRAY_LEN(columns));
		strbuf_puts(out, "<tr>");
		status_html_cell(out, pf->address);
		status_html_cell(out, pf->netdev);
		strbuf_puts(out, "<td class=\"sentence wrong\">");
		status_html_text(out, pf->missing);
		strbuf_puts(out, "</td>");
		put_pods_of(f, pf->address, out);
		strbuf_puts(out, "</tr>\n");
	}
	if (n)
		status_html_end(out);
}

/* --- holds and decisions --- */

static void put_pod(const struct ledger_owner *o, struct strbuf *out)
{
	strbuf_puts(out, "<td>");
	if (o->pod && *o->pod) {
		status_html_text(out, o->ns);
		strbuf_putc(out, '/');
		status_html_text(out, o->pod);
	}
	strbuf_puts(out, "</td>");
	status_html_cell(out, o->container);
}

static void put_held(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = { "VF",	"resource", "pod",   "container",
					       "state", "GPU",	    "class", ">for" };
	_cleanup_arena_ struct arena *a = arena_new(16 * 1024);
	struct holder *v;
	size_t n = status_holders(f, a, &v);

	if (!n)
		return;
	status_html_table(out, "Held VFs", columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < n; i++) {
		const struct ledger_hold *h = v[i].hold;

		strbuf_puts(out, "<tr>");
		status_html_cell(out, h->vf);
		status_html_cell(out, h->resource);
		put_pod(&h->owner, out);
		status_html_cell(out, v[i].state);
		status_html_cell(out, v[i].gpus);
		status_html_cell(out, v[i].class);
		put_age(f, h->since_ms, out);
		strbuf_puts(out, "</tr>\n");
	}
	status_html_end(out);
	strbuf_puts(
		out,
		"<p class=\"pale\">What they reach: <code>kubectl railmate probe POD -n NAMESPACE</code> measures in the container itself.</p>\n");
}

static void put_decision(const struct status_facts *f, const struct ledger_decision *d,
			 struct strbuf *out)
{
	static const char *const known[LEDGER_GPUS_MAX] = {
		[LEDGER_GPUS_UNKNOWN] = "not known",
		[LEDGER_GPUS_PREDICTED] = "predicted",
		[LEDGER_GPUS_KNOWN] = "known",
	};

	strbuf_puts(out, "<tr>");
	status_html_number(out, d->number);
	put_age(f, d->at_ms, out);
	status_html_cell(out, d->resource);
	put_pod(&d->owner, out);
	put_list(d->chosen, d->n_chosen, out);
	put_list(d->gpus, d->n_gpus, out);
	strbuf_printf(out, "<td class=\"sentence\">%s", known[d->known]);
	if (d->source && *d->source) {
		strbuf_puts(out, ": ");
		status_html_text(out, d->source);
	}
	strbuf_puts(out, "</td>");
	/* The sum of ranks, PIX 0 … SYS 4, beside that of the best. */
	if (d->checked && d->n_real_gpus)
		strbuf_printf(out, "<td class=\"%s\">%d, best %d</td>",
			      d->real_cost > d->best_cost ? "wrong" : "good", d->real_cost,
			      d->best_cost);
	else if (d->n_gpus)
		strbuf_printf(out, "<td>%d</td>", d->cost);
	else
		strbuf_puts(out, "<td></td>");
	strbuf_puts(out, "</tr>\n");
}

static void put_decisions(const struct status_facts *f, struct strbuf *out)
{
	static const char *const columns[] = { ">decision", ">ago",	 "resource",
					       "pod",	    "container", "VFs",
					       "GPUs",	    "GPUs were", "distance" };
	size_t n = f->ledger ? ledger_decisions(f->ledger) : 0;

	if (!n)
		return;
	status_html_table(out, "Last decisions", columns, ARRAY_LEN(columns));
	for (size_t i = 0; i < n && i < DECISIONS; i++)
		put_decision(f, ledger_decision_at(f->ledger, n - 1 - i), out);
	status_html_end(out);
}

void status_write_page(const struct status_facts *f, const char *nonce, struct strbuf *out)
{
	strbuf_puts(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>railmate ");
	status_html_text(out, f->node_name);
	strbuf_printf(out, "</title><style>%s</style></head><body><p id=\"age\"></p><main>\n<h1>",
		      style);
	status_html_text(out, f->node_name);
	strbuf_puts(out, " <span class=\"pale\">railmate " RAILMATE_VERSION "</span></h1>\n");
	put_ready(f, out);
	if (f->node) {
		put_pools(f, out);
		put_unhealthy(f, out);
		put_missing(f, out);
		put_degraded(f, out);
		put_picture(f, out);
		put_ports(f, out);
	}
	put_held(f, out);
	put_decisions(f, out);
	if (f->doctor)
		status_html_doctor(f->doctor, out);
	strbuf_printf(out, "</main>\n<script nonce=\"%s\">%s</script></body></html>\n", nonce,
		      script);
}
