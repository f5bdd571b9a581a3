/* railmatectl doctor: the faults of this machine that keep NCCL from being fast or right, and their
 * remedies. Changes nothing. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "diagnosis/diagnosis.h"

const int doctor_codes[DIAGNOSIS_VERDICT_MAX] = {
	[DIAGNOSIS_PASS] = EXIT_DONE,
	[DIAGNOSIS_WARN] = 5,
	[DIAGNOSIS_FAIL] = 6,
	[DIAGNOSIS_UNKNOWN] = 7,
};

struct request {
	const char *only, *manifest, *role;
	bool json, list, node_only;
	enum diagnosis_platform platform; /* of manifest */
};

struct patient {
	struct machine machine;
	struct facts *facts;
	struct diagnosis *report;
};

static void patient_done(struct patient *p)
{
	diagnosis_free(p->report);
	facts_free(p->facts);
	machine_close(&p->machine);
}

static int print_report(const struct patient *p, bool as_json)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct json j;
	int r;

	if (as_json) {
		json_init(&j, &out, 2);
		diagnosis_json(p->facts, p->report, &j);
		strbuf_putc(&out, '\n');
	} else {
		diagnosis_text(p->facts, p->report, &out);
	}
	r = print_out(&out);
	return r == EXIT_DONE ? doctor_codes[diagnosis_worst(p->report)] : r;
}

/* An empty standard output has nothing in it that could be applied by mistake. */
static int print_manifest(const struct patient *p, const struct request *req)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < diagnosis_n(p->report); i++) {
		const struct diagnosis_finding *f = diagnosis_at(p->report, i);

		if (f->verdict == DIAGNOSIS_UNKNOWN && f->check->in_manifest)
			fail(0, "%s is unknown, so nothing for it is in the manifest: %s",
			     f->check->id, f->sentence);
	}
	if (!diagnosis_manifest(p->facts, p->report, req->platform, req->role, &out))
		fail(0, "no finding can be fixed on the kernel's command line or by a module");
	return print_out(&out);
}

/* --- the list of checks --- */

static int list(void)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < doctor_n_checks(); i++)
		strbuf_printf(&out, "%-17s %s\n", doctor_check_at(i)->id,
			      doctor_check_at(i)->title);
	return print_out(&out);
}

/* --- command line --- */

static int check_request(struct request *req)
{
	const char *role = req->role;
	size_t len = role ? strspn(role, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

	if (req->list && (req->only || req->manifest || req->json))
		return fail(EXIT_USAGE, "--list takes neither --only, --fix-manifest nor --json");
	if (role && !str_eq(req->manifest, "openshift"))
		return fail(EXIT_USAGE, "--role is the node role of --fix-manifest openshift");
	/* It becomes a label's value and a part of a name. */
	if (role && (!len || role[len] || len > 40 || role[0] == '-' || role[len - 1] == '-'))
		return fail(EXIT_USAGE, "--role: '%s' is not lower case letters, digits and '-'",
			    role);
	if (!req->manifest)
		return EXIT_DONE;
	if (req->json)
		return fail(EXIT_USAGE, "--fix-manifest prints a file to apply, not --json");
	for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++) {
		req->platform = (enum diagnosis_platform)p;
		if (!strcmp(diagnosis_platform_name(req->platform), req->manifest))
			return EXIT_DONE;
	}
	return fail(EXIT_USAGE, "--fix-manifest: '%s' is none of grub, openshift, talos",
		    req->manifest);
}

int cmd_doctor(int argc, char **argv)
{
	_cleanup_(patient_done) struct patient p = { .machine.root_path = "/" };
	struct request req = { 0 };
	struct err err = { 0 };
	const struct word words[] = {
		{ "root", .value = &p.machine.root_path },
		{ "config", .value = &p.machine.config_path },
		{ "topology-hints", .value = &p.machine.hints_path },
		{ "only", .value = &req.only },
		{ "fix-manifest", .value = &req.manifest },
		{ "role", .value = &req.role },
		{ "node-only", .flag = &req.node_only },
		{ "list", .flag = &req.list },
		{ "json", .flag = &req.json },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = check_request(&req);
	if (r != EXIT_DONE)
		return r;
	if (req.list)
		return list();
	r = machine_open(&p.machine);
	if (r != EXIT_DONE)
		return r;
	p.facts = facts_gather(p.machine.root, p.machine.node->inv, p.machine.node->topo,
			       req.node_only ? FACTS_OF_NODE : FACTS_OF_HERE);
	p.facts->rails = p.machine.node->rails;
	if (doctor_run(p.facts, req.only, &p.report, &err) < 0)
		return fail(EXIT_USAGE, "%s", err.msg);
	return req.manifest ? print_manifest(&p, &req) : print_report(&p, req.json);
}
