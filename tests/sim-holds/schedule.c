/* Schedules: made by chance, run, shrunk, written and read. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

static struct world world;

/* Returns without a copy: what fails is told by its sentence. */
static void end(struct world *w, char *ret, size_t size)
{
	snprintf(ret, size, "%s", w->broken);
	if (w->u.up)
		us_kill(w);
	free(w->s.ledger.s);
	free(w->s.older.s);
	heap_off();
	heap_reset();
}

bool schedule_run(const struct schedule *s, bool trace, char *broken_by, size_t size)
{
	heap_on();
	world_begin(&world, &s->cfg, trace);
	for (unsigned i = 0; i < s->n && !world.broken[0]; i++)
		step_do(&world, &s->steps[i]);
	if (!world.broken[0])
		check_fair(&world);
	end(&world, broken_by, size);
	return !broken_by[0];
}

static struct config config_random(uint64_t *rng)
{
	struct config cfg = { .n_pools = next_random(rng) >> 20 & 1 ? 1 : 2,
			      .active_only = (next_random(rng) >> 20) % 4 != 0 };
	unsigned first = 0;

	for (unsigned i = 0; i < cfg.n_pools; i++) {
		struct pool *pool = &cfg.pools[i];

		pool->dra = !i && (next_random(rng) >> 20) % 3 == 0;
		pool->late = !pool->dra && (next_random(rng) >> 20 & 1);
		pool->moves = next_random(rng) >> 20 & 1;
		pool->first = first;
		pool->n = 1 + (unsigned)(next_random(rng) >> 20) % (cfg.n_pools > 1 ? 2 : 4);
		if (pool->dra && pool->n > CLAIM_VFS)
			pool->n = CLAIM_VFS;
		pool->moves &= !pool->dra;
		first += pool->n;
	}
	cfg.counts_users = cfg.active_only && (next_random(rng) >> 20) % 2;
	return cfg;
}

void schedule_random(struct schedule *ret, uint64_t seed, unsigned n, char *broken_by, size_t size)
{
	uint64_t rng = (seed + 1) * 0x9e3779b97f4a7c15u;
	bool faults;

	for (int i = 0; i < 4; i++)
		next_random(&rng);
	ret->cfg = config_random(&rng);
	ret->n = 0;
	ret->cfg.names_once = (next_random(&rng) >> 20) % 4 == 0;
	faults = (next_random(&rng) >> 20) % 8 != 0;
	ret->cfg.sickens = (next_random(&rng) >> 20) % 4 == 0;
	ret->cfg.mixed = ret->cfg.pools[0].dra && (next_random(&rng) >> 20) % 4 == 0;
	ret->cfg.strangers = (next_random(&rng) >> 20) % 4 == 0;
	/* What is away cannot be seen to be sick; and where a CNI plugin moves devices, it fails
	 * before our call. */
	for (unsigned i = 0; i < POOLS_MAX; i++)
		ret->cfg.pools[i].moves &=
			!(ret->cfg.sickens && ret->cfg.pools[i].late) && !ret->cfg.strangers;
	heap_on();
	world_begin(&world, &ret->cfg, false);
	while (ret->n < n && !world.broken[0]) {
		ret->steps[ret->n] = step_random(&world, &rng, faults);
		step_do(&world, &ret->steps[ret->n++]);
	}
	if (!world.broken[0])
		check_fair(&world);
	end(&world, broken_by, size);
}

/* --- shrinking --- */

static bool still_fails(const struct schedule *s)
{
	char why[512];

	return !schedule_run(s, false, why, sizeof(why));
}

static bool without(struct schedule *s, unsigned at, unsigned n)
{
	struct schedule less = *s;

	memmove(&less.steps[at], &less.steps[at + n], (less.n - at - n) * sizeof(less.steps[0]));
	less.n -= n;
	if (!still_fails(&less))
		return false;
	*s = less;
	return true;
}

static bool drop_steps(struct schedule *s)
{
	bool any = false;

	for (unsigned n = s->n / 2; n; n /= 2) {
		for (unsigned at = s->n >= n ? s->n - n + 1 : 0; at-- > 0;) {
			if (at + n <= s->n && without(s, at, n))
				any = true;
		}
	}
	return any;
}

static bool simplify_steps(struct schedule *s)
{
	bool any = false;

	for (unsigned i = 0; i < s->n; i++) {
		uint32_t r = s->steps[i].r;

		for (uint32_t less = 0; less < 4 && less < r; less++) {
			s->steps[i].r = less;
			if (still_fails(s)) {
				any = true;
				break;
			}
			s->steps[i].r = r;
		}
	}
	return any;
}

void schedule_shrink(struct schedule *s)
{
	while (drop_steps(s) || simplify_steps(s))
		;
}

/* --- as text --- */

int schedule_write(const struct schedule *s, const char *path, const char *broken_by)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -errno;
	fprintf(f, "# %s\n", broken_by);
	for (unsigned i = 0; i < s->cfg.n_pools; i++) {
		const struct pool *p = &s->cfg.pools[i];

		fprintf(f, "pool %s %u\n",
			p->dra	   ? "dra"
			: p->late  ? p->moves ? "late-moves" : "late"
			: p->moves ? "early-moves"
				   : "early",
			p->n);
	}
	fprintf(f, "kubelet %s\n",
		s->cfg.counts_users  ? "1.37"
		: s->cfg.active_only ? "1.34"
				     : "1.33");
	if (s->cfg.names_once)
		fputs("names once\n", f);
	if (s->cfg.sickens)
		fputs("vfs sicken\n", f);
	if (s->cfg.mixed)
		fputs("mixed\n", f);
	if (s->cfg.strangers)
		fputs("strangers\n", f);
	for (unsigned i = 0; i < s->n; i++)
		fprintf(f, "%s %u %#x\n", step_names[s->steps[i].kind], s->steps[i].a,
			s->steps[i].r);
	return fclose(f) ? -errno : 0;
}

static int read_pool(struct config *cfg, const char *mode, unsigned n)
{
	struct pool *p = &cfg->pools[cfg->n_pools];

	if (cfg->n_pools == POOLS_MAX || !n || n > VFS_MAX / 2)
		return -EINVAL;
	*p = (struct pool) { .dra = !strcmp(mode, "dra"),
			     .late = !strncmp(mode, "late", 4),
			     .moves = strstr(mode, "-moves"),
			     .n = n };
	p->first = cfg->n_pools ? cfg->pools[0].n : 0;
	cfg->n_pools++;
	return 0;
}

static int read_line(struct schedule *s, const char *line)
{
	char word[64], mode[64];
	unsigned a, r;

	if (line[0] == '#' || line[0] == '\n')
		return 0;
	if (sscanf(line, "pool %63s %u", mode, &a) == 2)
		return read_pool(&s->cfg, mode, a);
	if (!strcmp(line, "names once\n")) {
		s->cfg.names_once = true;
		return 0;
	}
	if (!strcmp(line, "vfs sicken\n")) {
		s->cfg.sickens = true;
		return 0;
	}
	if (!strcmp(line, "mixed\n")) {
		s->cfg.mixed = true;
		return 0;
	}
	if (!strcmp(line, "strangers\n")) {
		s->cfg.strangers = true;
		return 0;
	}
	/* A space of the format matches none as well, and there is "kubelet-kill". */
	if (!strncmp(line, "kubelet ", 8) && sscanf(line + 8, "%63s", mode) == 1) {
		s->cfg.active_only = strcmp(mode, "1.34") >= 0;
		s->cfg.counts_users = strcmp(mode, "1.37") >= 0;
		return 0;
	}
	if (sscanf(line, "%63s %u %x", word, &a, &r) != 3 || s->n == STEPS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < STEPS; i++) {
		if (!strcmp(word, step_names[i])) {
			s->steps[s->n++] = (struct step) { (uint8_t)i, (uint8_t)a, r };
			return 0;
		}
	}
	return -EINVAL;
}

int schedule_read(struct schedule *ret, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256];
	int r = 0;

	if (!f)
		return -errno;
	memset(ret, 0, sizeof(*ret));
	while (!r && fgets(line, sizeof(line), f))
		r = read_line(ret, line);
	fclose(f);
	return !r && !ret->cfg.n_pools ? -EINVAL : r;
}
