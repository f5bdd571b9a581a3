/* Ledgers to test with. */
#ifndef RAILMATE_TESTS_UNIT_LEDGER_SAMPLE_H
#define RAILMATE_TESTS_UNIT_LEDGER_SAMPLE_H

#include "ledger/ledger.h"

extern const struct ledger_decision sample_decision;

struct ledger_hold sample_hold(const char *vf);
/* One of everything. */
struct ledger *sample_ledger(void);

#endif
