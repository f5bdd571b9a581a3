#include "sim/stream-internal.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "sim/devman-internal.h"

void sim_gomap_walk(uint64_t *random, int *items, size_t n, unsigned copies)
{
	int walked[GOMAP_CELLS];

	assert(n <= GOMAP_CELLS);
	for (unsigned copy = 0; copy <= copies; copy++) {
		size_t start = sim_random_below(random, GOMAP_CELLS), done = 0;

		for (size_t i = 0; i < GOMAP_CELLS; i++) {
			size_t cell = (start + i) % GOMAP_CELLS;

			if (cell < n)
				walked[done++] = items[cell];
		}
		memcpy(items, walked, n * sizeof(*items));
	}
}

/* As many as show the shares of GPU-first pods that a real kubelet 1.36 showed. */
#define DEEP_COPIES 2

struct shape {
	size_t gpus, vfs;
	unsigned weight;
};

static const struct shape shapes[] = { { 1, 1, 30 }, { 2, 2, 22 }, { 4, 4, 16 },
				       { 8, 8, 8 },  { 4, 2, 12 }, { 2, 4, 12 } };

struct day {
	const struct stream_in *in;
	struct arena *arena;
	uint64_t random;
	struct stream_pod *pods;
	size_t *running, n_running;
	size_t busy_gpus, busy_vfs;
};

static bool fits(const struct stream_in *in, const struct shape *s)
{
	return s->gpus <= in->gpus && s->vfs <= in->vfs;
}

/* NULL: none fits. */
static const struct shape *draw_shape(struct day *d)
{
	unsigned total = 0, at;

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		total += fits(d->in, &shapes[i]) ? shapes[i].weight : 0;
	if (!total)
		return NULL;
	at = (unsigned)sim_random_below(&d->random, total);
	for (size_t i = 0;; i++) {
		unsigned weight = fits(d->in, &shapes[i]) ? shapes[i].weight : 0;

		if (at < weight)
			return &shapes[i];
		at -= weight;
	}
}

/* The limits of a container: sorted by name, as they come from protobuf. */
static bool draw_gpu_first(struct day *d)
{
	const char *names[] = { "cpu", "memory", d->in->gpu_resource, d->in->vf_resource };
	int order[ARRAY_LEN(names)] = { 0 };

	for (int i = 0; i < (int)ARRAY_LEN(names); i++) {
		int at = 0;

		for (int k = 0; k < (int)ARRAY_LEN(names); k++)
			at += k != i && (strcmp(names[k], names[i]) < 0 ||
					 (k < i && !strcmp(names[k], names[i])));
		order[at] = i;
	}
	sim_gomap_walk(&d->random, order, ARRAY_LEN(names), DEEP_COPIES);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (order[i] >= 2)
			return order[i] == 2;
	}
	return false;
}

/* Which pods leave, one after the other at random, until the next one fits and may come. */
static size_t *make_room(struct day *d, const struct shape *s, unsigned load, size_t *ret_n)
{
	size_t *gone = arena_array(d->arena, d->n_running, sizeof(*gone)), n = 0;

	while (d->n_running &&
	       (d->busy_gpus + s->gpus > d->in->gpus || d->busy_vfs + s->vfs > d->in->vfs ||
		d->busy_gpus * 100 > (size_t)load * d->in->gpus)) {
		size_t at = sim_random_below(&d->random, d->n_running), pod = d->running[at];

		d->running[at] = d->running[--d->n_running];
		d->busy_gpus -= d->pods[pod].gpus;
		d->busy_vfs -= d->pods[pod].vfs;
		gone[n++] = pod;
	}
	*ret_n = n;
	return gone;
}

struct stream sim_stream_new(const struct stream_in *in, struct arena *arena)
{
	struct day d = { .in = in, .arena = arena, .random = in->seed };
	struct stream out = { 0 };

	d.pods = arena_array(arena, in->pods, sizeof(*d.pods));
	d.running = arena_array(arena, in->gpus + 1, sizeof(*d.running));
	out.pods = d.pods;
	for (size_t i = 0; i < in->pods; i++) {
		const struct shape *s = draw_shape(&d);
		struct stream_pod *pod = &d.pods[i];
		unsigned load;

		if (!s)
			break;
		load = in->load_min +
		       (unsigned)sim_random_below(&d.random, in->load_max - in->load_min + 1);
		*pod = (struct stream_pod) { .gpus = s->gpus,
					     .vfs = s->vfs,
					     .gpu_first = draw_gpu_first(&d) };
		pod->leave = make_room(&d, s, load, &pod->n_leave);
		d.running[d.n_running++] = i;
		d.busy_gpus += s->gpus;
		d.busy_vfs += s->vfs;
		pod->busy_gpus = d.busy_gpus;
		out.n_pods++;
	}
	return out;
}
