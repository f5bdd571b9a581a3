/*
 * What of this machine keeps NCCL from being fast or right: facts in, findings out.
 *
 *   Every check is a row { id, title, about, run }: a pure function of the facts that says
 *   doctor_find().
 *
 *   text.c, json.c and manifest.c print what was found.
 *
 * A check says as many findings as there are things to say: one for each device in trouble, or a
 * single PASS for all; none at all when there is nothing here that it is about (AMD's on a machine
 * without AMD GPUs). What cannot be read is DOCTOR_UNKNOWN, never "off" and never a PASS.
 *
 * To add checks: a file with a table of rows, TABLE() in doctor-internal.h, and its line in check.c
 * (tables[]).
 *
 * Strings live in the report's or the facts' arena, or are static. One thread.
 */
#ifndef RAILMATE_DOCTOR_DOCTOR_H
#define RAILMATE_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct facts;
struct json;
struct strbuf;

/* From good to bad; a check's verdict is that of its worst finding, the doctor's that of its worst
 * check. */
enum doctor_verdict { DOCTOR_PASS, DOCTOR_UNKNOWN, DOCTOR_WARN, DOCTOR_FAIL, DOCTOR_VERDICT_MAX };
const char *doctor_verdict_name(enum doctor_verdict v); /* "PASS" */

/* --- findings --- */

enum doctor_platform { DOCTOR_GRUB, DOCTOR_OPENSHIFT, DOCTOR_TALOS, DOCTOR_PLATFORM_MAX };
const char *doctor_platform_name(enum doctor_platform p); /* "grub", as in --fix-manifest */

/*
 * Static and shared by findings of one kind: those are printed together. One sentence each.
 * fix[DOCTOR_GRUB] is Ubuntu's and RHEL's; NULL there: nothing to do (PASS only). NULL for another
 * platform: the same as GRUB's.
 */
struct doctor_advice {
	const char *meaning; /* for NCCL */
	const char *fix[DOCTOR_PLATFORM_MAX];
};

struct doctor_report;
struct doctor_check {
	const char *id;	   /* "acs": lower case, digits, '-' */
	const char *title; /* "ACS redirect between GPUs and NICs" */
	const char *about; /* --explain: what is looked at, what each verdict means, what it needs;
			      some sentences */
	void (*run)(const struct facts *f, struct doctor_report *r);
};

struct doctor_finding {
	const struct doctor_check *check;
	enum doctor_verdict verdict;
	const char *subject;  /* "0000:17:00.0", "mlx5_4 port 1", "host" */
	const char *sentence; /* what was found; names the subject, ends with a full stop */
	const struct doctor_advice *advice;
	const char *kernel_arg; /* what the fix adds to the kernel's command line, for the manifest;
				   NULL */
	const char *module;	/* what the fix loads at boot, likewise; NULL */
};

/* For run(): says a finding. The result is good until the next call; its kernel_arg may be set. */
struct doctor_finding *doctor_find(struct doctor_report *r, enum doctor_verdict v,
				   const struct doctor_advice *a, const char *subject,
				   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
struct arena *doctor_report_arena(const struct doctor_report *r);
/* The worst that the running check has said so far; DOCTOR_PASS when nothing. */
enum doctor_verdict doctor_worst_so_far(const struct doctor_report *r);

/* Every check, in the order of printing. */
size_t doctor_n_checks(void);
const struct doctor_check *doctor_check_at(size_t i);
const struct doctor_check *doctor_check_by_id(const char *id); /* NULL */

/* Runs the checks of only ("acs,iommu"; NULL: all). -EINVAL: a sentence that names the id nobody
 * has. */
int doctor_run(const struct facts *f, const char *only, struct doctor_report **ret,
	       struct err *err);
void doctor_report_free(struct doctor_report *r);
void doctor_report_freep(struct doctor_report **r);
#define _cleanup_doctor_report_ __attribute__((cleanup(doctor_report_freep)))

enum doctor_verdict doctor_report_verdict(const struct doctor_report *r);
size_t doctor_report_n(const struct doctor_report *r);
/* In the order of the checks. */
const struct doctor_finding *doctor_report_at(const struct doctor_report *r, size_t i);

/*
 * Findings of one check with the same verdict and advice, which are shown together, the worst
 * first. shown: their first sentences, few of those that are UNKNOWN.
 */
struct doctor_kind {
	const struct doctor_finding *first;
	size_t n;
	const char *const *shown;
	size_t n_shown;
};
/* In the report's arena. */
size_t doctor_report_kinds(const struct doctor_report *r, const struct doctor_kind **ret);

void doctor_put_paragraph(struct strbuf *out, const char *text); /* wrapped as doctor_text() does */
void doctor_text(const struct facts *f, const struct doctor_report *r, struct strbuf *out);
void doctor_json(const struct facts *f, const struct doctor_report *r,
		 struct json *j); /* a whole object */
/* Can what this check finds be in a manifest? Of the others nothing is missing there when they are
 * unknown. */
bool doctor_is_for_manifest(const struct doctor_check *check);
/* The host change that the findings ask for, ready to apply; false: they ask for none, and nothing
 * was written. role: the pool of nodes that OpenShift's is for; NULL: worker. */
bool doctor_manifest(const struct facts *f, const struct doctor_report *r, enum doctor_platform p,
		     const char *role, struct strbuf *out);

#endif
