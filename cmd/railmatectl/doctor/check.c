/* The table of all checks, and running some of them. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"

#define ADVICE(name, meaning, ...)                                                                 \
	const struct diagnosis_advice doctor_##name = { meaning, { __VA_ARGS__ } };
#include "doctor/advice.def"
#undef ADVICE

/* In the order of printing: devices that must be there, places, wiring, the host. */
static const struct {
	const struct diagnosis_check *checks;
	const size_t *n;
} tables[] = {
	{ doctor_place_checks, &doctor_place_checks_n },
	{ doctor_layout_checks, &doctor_layout_checks_n },
	{ doctor_vf_checks, &doctor_vf_checks_n },
	{ doctor_roce_checks, &doctor_roce_checks_n },
	{ doctor_table_checks, &doctor_table_checks_n },
	{ doctor_acs_checks, &doctor_acs_checks_n },
	{ doctor_board_checks, &doctor_board_checks_n },
	{ doctor_pcie_checks, &doctor_pcie_checks_n },
	{ doctor_host_checks, &doctor_host_checks_n },
	{ doctor_limit_checks, &doctor_limit_checks_n },
};

size_t doctor_n_checks(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		n += *tables[i].n;
	return n;
}

const struct diagnosis_check *doctor_check_at(size_t at)
{
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		if (at < *tables[i].n)
			return &tables[i].checks[at];
		at -= *tables[i].n;
	}
	return NULL;
}

/* Marks the checks of "a,b"; each comma has a name on both sides. */
static int mark(const char *only, bool *marked, struct err *err)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;
	_cleanup_free_ char *words = xstrdup(only);

	for (size_t i = 0; i < doctor_n_checks(); i++)
		strbuf_printf(&all, "%s%s", i ? ", " : "", doctor_check_at(i)->id);
	for (char *word = words, *next; word; word = next) {
		size_t i = 0;

		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		while (i < doctor_n_checks() && strcmp(doctor_check_at(i)->id, word) != 0)
			i++;
		if (!*word)
			return err_set(err, EINVAL, "an empty name of a check; there are: %s",
				       strbuf_str(&all));
		if (i == doctor_n_checks())
			return err_set(err, EINVAL, "there is no check '%.40s'; there are: %s",
				       word, strbuf_str(&all));
		marked[i] = true;
	}
	return 0;
}

int doctor_run(const struct facts *f, const char *only, struct diagnosis **ret, struct err *err)
{
	_cleanup_free_ bool *marked = xcalloc(doctor_n_checks(), sizeof(*marked));
	struct diagnosis *r;

	if (only && mark(only, marked, err) < 0)
		return -EINVAL;
	r = diagnosis_new();
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		if (!only || marked[i])
			diagnosis_run(r, doctor_check_at(i), f);
	}
	*ret = r;
	return 0;
}
