/* Shared by the files of the room: the tables of checks, and a fix. */
#ifndef RAILMATE_DOCTOR_DOCTOR_INTERNAL_H
#define RAILMATE_DOCTOR_DOCTOR_INTERNAL_H

#include "doctor/doctor.h"
#include "facts/facts.h"
#include "diagnosis/diagnosis.h"

#define TABLE(name)                                                                                \
	extern const struct diagnosis_check name[];                                                \
	extern const size_t name##_n
TABLE(doctor_place_checks);
TABLE(doctor_layout_checks);
TABLE(doctor_acs_checks);
TABLE(doctor_board_checks);
TABLE(doctor_pcie_checks);
TABLE(doctor_host_checks);
TABLE(doctor_vf_checks);
TABLE(doctor_roce_checks);
TABLE(doctor_table_checks);
TABLE(doctor_limit_checks);

/* doctor_NAME of each row. */
#define ADVICE(name, meaning, ...) extern const struct diagnosis_advice doctor_##name;
#include "doctor/advice.def"
#undef ADVICE

/* A finding with the advice of that row: its subject, its sentence as of printf(). */
#define doctor_fail(r, row, ...)    diagnosis_add(r, DIAGNOSIS_FAIL, &doctor_##row, __VA_ARGS__)
#define doctor_warn(r, row, ...)    diagnosis_add(r, DIAGNOSIS_WARN, &doctor_##row, __VA_ARGS__)
#define doctor_unknown(r, row, ...) diagnosis_add(r, DIAGNOSIS_UNKNOWN, &doctor_##row, __VA_ARGS__)
#define doctor_pass(r, row, ...)    diagnosis_add(r, DIAGNOSIS_PASS, &doctor_##row, __VA_ARGS__)

/* The fix for facts that only root sees. */
#define DOCTOR_NEED_PRIVILEGE                                                                      \
	"Run it as root with CAP_SYS_ADMIN on the node itself, or in a privileged pod."

#endif
