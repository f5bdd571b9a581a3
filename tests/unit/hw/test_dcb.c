/* Which priority, and does a policy of NCCL's environment go where nothing is dropped? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/dcb.h"

static struct hw_dcb port(int pfc, enum hw_dcb_trust trust)
{
	struct hw_dcb dcb = hw_dcb_unknown();

	dcb.pfc = pfc;
	dcb.trust = trust;
	if (trust == HW_DCB_TRUST_DSCP)
		dcb.priority_of_dscp[26] = 3;
	return dcb;
}

static void an_untagged_packet_has_the_priority_of_its_dscp(void **state)
{
	const struct hw_dcb dscp = port(8, HW_DCB_TRUST_DSCP), pcp = port(8, HW_DCB_TRUST_PCP),
			    unknown = hw_dcb_unknown();

	(void)state;
	assert_int_equal(hw_dcb_priority(&dscp, 106), 3);
	assert_int_equal(hw_dcb_priority(&dscp, 104), 3); /* ECN bits do not matter */
	assert_int_equal(hw_dcb_priority(&dscp, 0), 0);
	assert_int_equal(hw_dcb_priority(&dscp, 255), 0);
	assert_int_equal(hw_dcb_priority(&pcp, 106), 0);
	assert_int_equal(hw_dcb_priority(&unknown, 106), -1);
}

struct row {
	int pfc;
	enum hw_dcb_trust trust;
	int tc, sl;
	const char *want; /* "" none */
};

static void a_policy_is_held_against_the_port(void **state)
{
	static const struct row rows[] = {
		{ 8, HW_DCB_TRUST_DSCP, 106, -1, "" },
		{ 16, HW_DCB_TRUST_DSCP, 106, -1,
		  "NCCL_IB_TC 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only" },
		{ 0, HW_DCB_TRUST_DSCP, 106, -1,
		  "NCCL_IB_TC 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on no priority" },
		{ 24, HW_DCB_TRUST_DSCP, 64, -1,
		  "NCCL_IB_TC 64 is DSCP 16, which it puts on priority 0, but PFC is enabled on priority 3, 4 only" },
		{ 8, HW_DCB_TRUST_PCP, 106, -1,
		  "NCCL_IB_TC 106 is DSCP 26, which it does not look at (it trusts the VLAN priority), so untagged packets have priority 0, but PFC is enabled on priority 3 only" },
		{ 1, HW_DCB_TRUST_PCP, 106, -1, "" },
		{ 8, HW_DCB_TRUST_DSCP, 0, -1,
		  "NCCL_IB_TC 0 is DSCP 0, which it puts on priority 0, but PFC is enabled on priority 3 only" },
		{ 0, HW_DCB_TRUST_DSCP, 0, -1, "" },
		{ 0, HW_DCB_TRUST_DSCP, 2, -1, "" },
		{ -1, HW_DCB_TRUST_DSCP, 106, -1, "" },
		{ 8, HW_DCB_TRUST_UNKNOWN, 106, -1, "" },
		{ 8, HW_DCB_TRUST_DSCP, -1, -1, "" },
		{ 8, HW_DCB_TRUST_DSCP, -1, 3,
		  "NCCL_IB_SL 3 is a VLAN priority, which it does not look at: it trusts DSCP, which NCCL_IB_TC sets" },
		{ 8, HW_DCB_TRUST_DSCP, -1, 0, "" },
		{ 8, HW_DCB_TRUST_PCP, -1, 3, "" },
		{ 8, HW_DCB_TRUST_PCP, -1, 11, "" },
		{ 8, HW_DCB_TRUST_PCP, -1, 4,
		  "NCCL_IB_SL 4 is priority 4 of a VLAN tag, but PFC is enabled on priority 3 only" },
		{ 0, HW_DCB_TRUST_PCP, -1, 0, "" },
		{ 8, HW_DCB_TRUST_PCP, 106, 3, "" },  /* the tag decides */
		{ 8, HW_DCB_TRUST_DSCP, 106, 5, "" }, /* the DSCP decides */
		{ 8, HW_DCB_TRUST_UNKNOWN, -1, 5, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		const struct hw_dcb dcb = port(rows[i].pfc, rows[i].trust);

		assert_int_equal(hw_dcb_contradicts(&dcb, rows[i].tc, rows[i].sl, &text),
				 *rows[i].want != 0);
		assert_string_equal(strbuf_str(&text), rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_untagged_packet_has_the_priority_of_its_dscp),
		cmocka_unit_test(a_policy_is_held_against_the_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
