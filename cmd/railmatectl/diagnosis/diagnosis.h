/*
 * The results of checks: findings with a verdict, a sentence and a fix, as text, as JSON, and as
 * the change of the host that they ask for.
 *
 * A check is a row { id, title, run }: a pure function of the facts that calls
 * diagnosis_add() for each finding: one for each device in trouble, or a single PASS for all; none
 * at all when there is nothing here that it is about (AMD's on a machine without AMD GPUs). A fact
 * that cannot be read is DIAGNOSIS_UNKNOWN, never "off" and never a PASS.
 *
 * Strings live in the diagnosis's arena, or are static. One thread.
 */
#ifndef RAILMATE_DIAGNOSIS_DIAGNOSIS_H
#define RAILMATE_DIAGNOSIS_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct facts;
struct json;
struct strbuf;

/* From good to bad; a check's verdict is that of its worst finding, the doctor's that of its worst
 * check. */
enum diagnosis_verdict {
	DIAGNOSIS_PASS,
	DIAGNOSIS_UNKNOWN,
	DIAGNOSIS_WARN,
	DIAGNOSIS_FAIL,
	DIAGNOSIS_VERDICT_MAX
};
const char *diagnosis_verdict_name(enum diagnosis_verdict v); /* "PASS" */

enum diagnosis_platform {
	DIAGNOSIS_GRUB,
	DIAGNOSIS_OPENSHIFT,
	DIAGNOSIS_TALOS,
	DIAGNOSIS_PLATFORM_MAX
};
const char *diagnosis_platform_name(enum diagnosis_platform p); /* "grub", as in --fix-manifest */

/*
 * Static and shared by findings of one kind: those are printed together. One sentence each.
 * fix[DIAGNOSIS_GRUB] is Ubuntu's and RHEL's; NULL there: nothing to do (PASS only). NULL for
 * another platform: the same as GRUB's. A PASS whose sentence is enough has no advice.
 */
struct diagnosis_advice {
	const char *meaning; /* for NCCL */
	const char *fix[DIAGNOSIS_PLATFORM_MAX];
};

struct diagnosis;
struct diagnosis_check {
	const char *id;	   /* "acs": lower case, digits, '-' */
	const char *title; /* "ACS redirect between GPUs and NICs" */
	void (*run)(const struct facts *f, struct diagnosis *r);
	bool in_manifest; /* its findings may have kernel_arg or module */
};

struct diagnosis_finding {
	const struct diagnosis_check *check;
	enum diagnosis_verdict verdict;
	const char *subject;  /* "0000:17:00.0", "mlx5_4 port 1", "host" */
	const char *sentence; /* the finding; names the subject, ends with a full stop */
	const struct diagnosis_advice *advice; /* never NULL */
	/* The fix's addition to the kernel's command line, for the manifest; NULL */
	const char *kernel_arg;
	const char *module; /* the module that the fix loads at boot, likewise; NULL */
};

/* --- making one --- */

struct diagnosis *diagnosis_new(void);
/* Runs one check, which adds its findings. Each check once at most. */
void diagnosis_run(struct diagnosis *r, const struct diagnosis_check *check, const struct facts *f);

/* For run(): adds a finding. The result is good until the next call; its kernel_arg may be set. */
struct diagnosis_finding *diagnosis_add(struct diagnosis *r, enum diagnosis_verdict v,
					const struct diagnosis_advice *a, const char *subject,
					const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A PASS of the host without advice, unless the running check has found trouble. */
void diagnosis_fine(struct diagnosis *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
struct arena *diagnosis_arena(const struct diagnosis *r);
/* The worst verdict of the running check so far; DIAGNOSIS_PASS when there is none. */
enum diagnosis_verdict diagnosis_worst_so_far(const struct diagnosis *r);
/* How many findings there were before the running check: its own begin here. */
size_t diagnosis_n_before(const struct diagnosis *r);

void diagnosis_free(struct diagnosis *r);
void diagnosis_freep(struct diagnosis **r);
#define _cleanup_diagnosis_ __attribute__((cleanup(diagnosis_freep)))

/* --- reading it --- */

enum diagnosis_verdict diagnosis_worst(const struct diagnosis *r);
/* The worst verdict of a check that ran; -1: it does not apply. */
int diagnosis_verdict_of(const struct diagnosis *r, const struct diagnosis_check *c);
size_t diagnosis_n(const struct diagnosis *r);
/* In the order of the checks. */
const struct diagnosis_finding *diagnosis_at(const struct diagnosis *r, size_t i);

/* --- printing it --- */

void diagnosis_text(const struct facts *f, const struct diagnosis *r, struct strbuf *out);
void diagnosis_json(const struct facts *f, const struct diagnosis *r,
		    struct json *j); /* a whole object */
/* The host change that the findings ask for, ready to apply; false: they ask for none, and nothing
 * was written. role: the pool of nodes that OpenShift's is for; NULL: worker. */
bool diagnosis_manifest(const struct facts *f, const struct diagnosis *r, enum diagnosis_platform p,
			const char *role, struct strbuf *out);

#endif
