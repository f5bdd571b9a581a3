/* railmatectl simulate: the same day of pods under every policy, on this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "sim/simulate.h"

#define PODS_MAX 1000000

struct request {
	const char *pods, *seed, *load, *pool;
	bool json;
};

struct run {
	const struct machine *m;
	struct sim_in in;
	const struct sim_result *results; /* one for each policy */
	size_t n;
};

/* --- the request --- */

static int read_number(const char *option, const char *text, uint64_t max, uint64_t *ret,
		       struct err *err)
{
	if (str_to_u64(text, 10, max, ret) == 0)
		return 0;
	return err_set(err, EINVAL, "%s: '%s' is not a number up to %llu", option, text,
		       (unsigned long long)max);
}

static int read_load(const char *text, unsigned *ret_min, unsigned *ret_max, struct err *err)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *dash = strchr(copy, '-');
	uint64_t min, max;
	int r;

	if (dash)
		*dash = '\0';
	r = str_to_u64(copy, 10, 100, &min);
	max = min;
	if (r == 0 && dash)
		r = str_to_u64(dash + 1, 10, 100, &max);
	if (r < 0 || !min || min > max)
		return err_set(err, EINVAL, "--load: '%s' is not a range of per cent (60-95)",
			       text);
	*ret_min = (unsigned)min;
	*ret_max = (unsigned)max;
	return 0;
}

static int read_request(struct run *run, const struct request *req, struct err *err)
{
	struct stream_in *day = &run->in.day;
	uint64_t pods = 0;
	int r;

	run->in.node = run->m->node;
	r = machine_pool(run->m, req->pool, &run->in.pool, err);
	if (r == 0)
		r = read_number("--pods", req->pods, PODS_MAX, &pods, err);
	if (r == 0 && !pods)
		r = err_set(err, EINVAL, "--pods must be at least 1");
	if (r == 0)
		r = read_number("--seed", req->seed, INT64_MAX, &day->seed, err);
	if (r == 0)
		r = read_load(req->load, &day->load_min, &day->load_max, err);
	day->pods = pods;
	return r;
}

/* --- the answer --- */

static void print_text(const struct run *run, struct strbuf *out)
{
	const struct stream_in *day = &run->in.day;
	int width = (int)strlen("policy");

	for (size_t i = 0; i < run->n; i++) {
		int len = (int)strlen(run->results[i].policy->name);

		width = len > width ? len : width;
	}
	strbuf_printf(
		out,
		"pool %s: %zu pods, seed %llu, load %u-%u %%: %.0f %% of the GPUs busy in the mean\n\n",
		run->in.pool->cfg->resource, day->pods, (unsigned long long)day->seed,
		day->load_min, day->load_max, run->results[0].load);
	strbuf_printf(out, "%-*s  %8s   %5s  best there was\n", width, "policy", "at best", "mean");
	for (size_t i = 0; i < run->n; i++) {
		const struct sim_result *r = &run->results[i];

		strbuf_printf(out, "%-*s  %6.2f %%   %5.3f  %5.3f           %s\n", width,
			      r->policy->name, sim_percent((double)r->best, r->pairs),
			      sim_mean_rank(&r->got), sim_mean_rank(&r->optimum), r->policy->what);
	}
	strbuf_puts(
		out,
		"\n"
		"at best: GPU-VF pairs of the class that the best choice among the free VFs gives\n"
		"mean: of the pairs' ranks, PIX 0, PXB 1, PHB 2, NODE 3, SYS 4\n"
		"best there was: the same of the best choice; it is higher where other pods left worse VFs\n");
}

static void json_classes(struct json *j, const char *key, const struct score_classes *c)
{
	static const char *const names[ALIGN_RANKS] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

	json_kv_object(j, key);
	for (int i = 0; i < ALIGN_RANKS; i++)
		json_kv_int(j, names[i], (int64_t)c->n[i]);
	json_end_object(j);
}

static void json_result(struct json *j, const struct sim_result *r)
{
	json_begin_object(j);
	json_kv_string(j, "name", r->policy->name);
	json_kv_string(j, "what", r->policy->what);
	json_kv_int(j, "pods", (int64_t)r->pods);
	json_kv_int(j, "refused", (int64_t)r->refused);
	json_kv_int(j, "busy_percent", (int)(r->load + 0.5));
	json_kv_int(j, "gpu_first_percent",
		    (int)(sim_percent((double)r->gpu_first, r->pods) + 0.5));
	json_kv_int(j, "predicted", (int64_t)r->predicted);
	json_kv_int(j, "predicted_right", (int64_t)r->predicted_right);
	json_kv_int(j, "pairs", (int64_t)r->pairs);
	json_kv_int(j, "best", (int64_t)r->best);
	json_kv_int(j, "rank", (int64_t)sim_score_rank(&r->got));
	json_kv_int(j, "best_rank", (int64_t)sim_score_rank(&r->optimum));
	json_classes(j, "classes", &r->got);
	json_classes(j, "best_classes", &r->optimum);
	json_end_object(j);
}

static void print_json(const struct run *run, struct strbuf *out)
{
	const struct stream_in *day = &run->in.day;
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "resource", run->in.pool->cfg->resource);
	json_kv_int(&j, "pods", (int64_t)day->pods);
	json_key(&j, "seed");
	json_put_int(&j, (int64_t)day->seed);
	json_kv_int(&j, "load_min", day->load_min);
	json_kv_int(&j, "load_max", day->load_max);
	json_kv_array(&j, "policies");
	for (size_t i = 0; i < run->n; i++)
		json_result(&j, &run->results[i]);
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

/* --- the command --- */

int cmd_simulate(int argc, char **argv)
{
	_cleanup_(machine_close) struct machine m = { .root_path = "/" };
	_cleanup_arena_ struct arena *arena = arena_new(1 << 20);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct request req = { .pods = "1000", .seed = "1", .load = "60-95" };
	struct run run = { .m = &m };
	struct err err = { 0 };
	const struct word words[] = {
		{ "root", &m.root_path, NULL }, { "config", &m.config_path, NULL },
		{ "json", NULL, &req.json },	{ "pods", &req.pods, NULL },
		{ "seed", &req.seed, NULL },	{ "load", &req.load, NULL },
		{ "pool", &req.pool, NULL },	{ "topology-hints", &m.hints_path, NULL },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = machine_open(&m);
	if (r != EXIT_DONE)
		return r;
	if (read_request(&run, &req, &err) < 0)
		return fail(EXIT_REFUSED, "%s", err.msg);
	run.results = sim_run(&run.in, &run.n, arena);
	if (!run.results)
		return fail(EXIT_REFUSED,
			    "no pod fits on this machine: %zu GPUs, %zu VFs in the pool %s",
			    m.node->inv->n_gpu, run.in.pool->n_devs, run.in.pool->cfg->resource);
	(req.json ? print_json : print_text)(&run, &out);
	return print_out(&out);
}
