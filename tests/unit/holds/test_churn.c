/*
 * A node where everything happens in any order: a kubelet that offers what it has given already,
 * pods that end for the kubelet while their containers run on, kubelets and daemons that start
 * again. Whatever happens, no VF is ever in two live containers.
 */
#include "unit/holds/world.h"

#define N_PODS 24

static const char *const vfs[] = { V0, V1, V2, V3 };

static struct fate {
	const char *pod, *uid;
	size_t vf;
	bool runs, listed; /* really; for the kubelet */
} fates[N_PODS];
static uint32_t dice;
static unsigned n_begun, n_refused, n_uids;

static unsigned roll(unsigned n)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 16) % n;
}

static void list_now(void)
{
	struct says s[N_PODS + 1] = { { "other", NULL } };
	size_t n = 1;

	for (size_t i = 0; i < N_PODS; i++) {
		if (fates[i].listed)
			s[n++] = (struct says) { fates[i].pod, vfs[fates[i].vf] };
	}
	pass(roll(3000));
	answer(NULL, w.now.mono_ms, w.epoch, s, n);
}

static void assert_alone(size_t vf)
{
	for (size_t i = 0; i < N_PODS; i++)
		assert_false(fates[i].runs && fates[i].vf == vf);
}

/* Pods have few names, and UIDs of their own. */
static void try_to_begin(struct fate *f)
{
	size_t vf = roll(ARRAY_LEN(vfs));
	const char *pod = arena_printf(w.a, "web-%u#u%u", roll(6), ++n_uids);
	uint64_t number = allocate(pod, vfs[vf]);

	if (roll(3) == 0)
		list_now();
	pass(roll(1500));
	if (!starts_by(pod, vfs[vf], number, false)) {
		n_refused++;
		return;
	}
	assert_alone(vf);
	n_begun++;
	*f = (struct fate) { who(pod).pod, who(pod).uid, vf, true, true };
	run_pod(pod);
	tick();
}

static void live_on(struct fate *f)
{
	if (f->listed) {
		f->listed = roll(4) != 0;
		return;
	}
	f->runs = roll(2) != 0;
	for (size_t i = w.n_runs; !f->runs && i-- > 0;) {
		if (!strcmp(w.runs[i], f->uid))
			w.runs[i] = w.runs[--w.n_runs];
	}
}

static void start_something_again(void)
{
	struct ledger *copy;

	if (roll(2)) {
		new_kubelet();
		return;
	}
	copy = copy_of_ledger();
	restart(copy);
	records_read();
}

static void no_vf_is_ever_in_two_live_containers(void **state)
{
	(void)state;
	dice = 7;
	for (unsigned step = 0; step < 6000; step++) {
		struct fate *f = &fates[roll(N_PODS)];

		if (f->runs)
			live_on(f);
		else
			try_to_begin(f);
		if (roll(4) == 0)
			list_now();
		if (roll(3) == 0)
			tick();
		if (roll(200) == 0)
			start_something_again();
	}
	assert_true(n_begun > 100 && n_refused > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_vf_is_ever_in_two_live_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
