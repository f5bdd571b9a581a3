#include "support/emulated.h"

#include <stdlib.h>

bool is_emulated(void)
{
	return getenv("RAILMATE_EMULATED") != NULL;
}
