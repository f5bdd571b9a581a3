/* sim-holds: see README.md. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heap.h"
#include "run.h"

static const char usage[] =
	"usage: sim-holds [--seed N] [--schedules N] [--steps N] [--seconds N]   by chance\n"
	"       sim-holds --exhaustive [--faults N]                              all of the small world\n"
	"       sim-holds --replay FILE [--shrink]                               one schedule, told step by step\n"
	"  --out FILE   where a schedule that fails goes, shrunk (default: sim-holds.failed)\n";

struct options {
	uint64_t seed;
	unsigned long long schedules;
	unsigned steps, faults;
	long seconds;
	bool exhaustive, shrink;
	const char *replay, *out;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int failed(const struct options *opt, struct schedule *s)
{
	char why[512];

	schedule_shrink(s);
	if (schedule_run(s, true, why, sizeof(why)))
		snprintf(why, sizeof(why), "it fails no more when it is run again");
	printf("FAILED: %s\n", why);
	if (schedule_write(s, opt->out, why) == 0)
		printf("the schedule, shrunk to %u steps, is in %s: sim-holds --replay %s\n", s->n,
		       opt->out, opt->out);
	return 1;
}

static int by_chance(const struct options *opt)
{
	static struct schedule s;
	double began = seconds();
	unsigned long long n = 0;
	char why[512];

	for (; n < opt->schedules; n++) {
		if (opt->seconds && n % 64 == 0 && seconds() - began > (double)opt->seconds)
			break;
		schedule_random(&s, opt->seed + n, opt->steps, why, sizeof(why));
		if (why[0]) {
			printf("seed %llu: %s\n", (unsigned long long)(opt->seed + n), why);
			return failed(opt, &s);
		}
	}
	printf("%llu schedules of %u steps, seeds %llu to %llu: all invariants hold (%.1f s, %.0f a second)\n",
	       n, opt->steps, (unsigned long long)opt->seed,
	       (unsigned long long)(opt->seed + n - 1), seconds() - began,
	       (double)n / (seconds() - began));
	return 0;
}

static int replay(const struct options *opt)
{
	static struct schedule s;
	char why[512];

	if (schedule_read(&s, opt->replay) < 0) {
		fprintf(stderr, "sim-holds: %s is no schedule\n", opt->replay);
		return 2;
	}
	if (opt->shrink)
		return failed(opt, &s);
	if (schedule_run(&s, true, why, sizeof(why))) {
		puts("all invariants hold");
		return 0;
	}
	printf("FAILED: %s\n", why);
	return 1;
}

static int exhaustive(const struct options *opt)
{
	static const char *const names[] = { "early binding", "late binding", "claims" };
	static struct schedule s;

	for (int binding = 0; binding < BINDINGS; binding++) {
		double began = seconds();
		struct explored all;

		if (!explore((enum binding)binding, opt->faults, opt->faults < 2, &all, &s))
			return failed(opt, &s);
		printf("%s: %llu interleavings of 3 pods, 2 VFs and up to %u faults (%llu states): all invariants hold (%.1f s)\n",
		       names[binding], all.runs, opt->faults, all.states, seconds() - began);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "schedules", required_argument, NULL, 'n' },
		{ "steps", required_argument, NULL, 'l' },
		{ "seconds", required_argument, NULL, 't' },
		{ "faults", required_argument, NULL, 'f' },
		{ "exhaustive", no_argument, NULL, 'e' },
		{ "replay", required_argument, NULL, 'r' },
		{ "shrink", no_argument, NULL, 'k' },
		{ "out", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	struct options opt = {
		.seed = 1, .schedules = 1000, .steps = 60, .faults = 2, .out = "sim-holds.failed"
	};

	for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		if (c == 's')
			opt.seed = strtoull(optarg, NULL, 10);
		else if (c == 'n')
			opt.schedules = strtoull(optarg, NULL, 10);
		else if (c == 'l')
			opt.steps = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 't')
			opt.seconds = strtol(optarg, NULL, 10);
		else if (c == 'f')
			opt.faults = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			opt.replay = optarg;
		else if (c == 'o')
			opt.out = optarg;
		else if (c == 'e')
			opt.exhaustive = true;
		else if (c == 'k')
			opt.shrink = true;
		else
			return fputs(usage, stderr), 2;
	}
	if (optind != argc || opt.steps > STEPS_MAX)
		return fputs(usage, stderr), 2;
	setvbuf(stdout, NULL, _IOLBF, 8192);
	return opt.replay ? replay(&opt) : opt.exhaustive ? exhaustive(&opt) : by_chance(&opt);
}
