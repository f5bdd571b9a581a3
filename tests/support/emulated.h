/* Whether an emulator of another processor runs this test (tests/CMakeLists.txt says so): it shows
 * its sysroot as "/", so the machine itself is out of reach.
 */
#ifndef RAILMATE_TESTS_SUPPORT_EMULATED_H
#define RAILMATE_TESTS_SUPPORT_EMULATED_H

#include <stdbool.h>

bool is_emulated(void);

/* How many of n rounds by chance: an emulator has time for a tenth. */
int emulated_rounds(int n);

#endif
