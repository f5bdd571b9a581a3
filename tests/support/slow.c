#include "support/slow.h"

#include <stdlib.h>

bool is_emulated(void)
{
	return getenv("RAILMATE_EMULATED") != NULL;
}

bool is_slow(void)
{
	return getenv("RAILMATE_SLOW") != NULL;
}

int chance_rounds(int n)
{
	return is_slow() ? n / 10 : n;
}
