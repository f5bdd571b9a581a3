#include "support/emulated.h"

#include <stdlib.h>

bool is_emulated(void)
{
	return getenv("RAILMATE_EMULATED") != NULL;
}

int emulated_rounds(int n)
{
	return is_emulated() ? n / 10 : n;
}
