/* The report as JSON: every check that ran, every finding, nothing cut. */
#include "base/json.h"
#include "facts/facts.h"
#include "diagnosis/diagnosis-internal.h"

static void put_finding(const struct diagnosis_finding *f, struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "verdict", diagnosis_verdict_name(f->verdict));
	json_kv_string(j, "subject", f->subject);
	json_kv_string(j, "finding", f->sentence);
	json_kv_string(j, "meaning", f->advice->meaning);
	json_key(j, "fix");
	if (f->advice->fix[DIAGNOSIS_GRUB]) {
		json_begin_object(j);
		for (enum diagnosis_platform p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++)
			json_kv_string(j, diagnosis_platform_name(p),
				       diagnosis_fix_on(f->advice, p));
		json_end_object(j);
	} else {
		json_put_null(j);
	}
	json_kv_string(j, "kernel_arg", f->kernel_arg);
	json_kv_string(j, "module", f->module);
	json_end_object(j);
}

static void put_check(const struct diagnosis *r, const struct diagnosis_check *c, struct json *j)
{
	int verdict = diagnosis_verdict_of(r, c);

	json_begin_object(j);
	json_kv_string(j, "id", c->id);
	json_kv_string(j, "title", c->title);
	json_kv_string(j, "verdict",
		       verdict < 0 ? NULL
				   : diagnosis_verdict_name((enum diagnosis_verdict)verdict));
	json_key(j, "findings");
	json_begin_array(j);
	for (size_t i = 0; i < r->n; i++) {
		if (r->findings[i].check == c)
			put_finding(&r->findings[i], j);
	}
	json_end_array(j);
	json_end_object(j);
}

void diagnosis_json(const struct facts *f, const struct diagnosis *r, struct json *j)
{
	json_begin_object(j);
	json_kv_string(j, "verdict", diagnosis_verdict_name(diagnosis_worst(r)));
	json_kv_bool(j, "live", f->live);
	json_key(j, "container");
	if (f->confined == FACTS_UNKNOWN)
		json_put_null(j);
	else
		json_put_bool(j, f->confined == FACTS_YES);
	json_key(j, "checks");
	json_begin_array(j);
	for (size_t i = 0; i < r->n_ran; i++)
		put_check(r, r->ran[i], j);
	json_end_array(j);
	json_end_object(j);
}
