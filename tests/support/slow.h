/* What a test leaves out where its program is slow; tests/CMakeLists.txt says where, in the
 * environment.
 */
#ifndef RAILMATE_TESTS_SUPPORT_SLOW_H
#define RAILMATE_TESTS_SUPPORT_SLOW_H

#include <stdbool.h>

/* An emulator of another processor runs it, and shows its sysroot as "/": the machine itself is out
 * of reach.
 */
bool is_emulated(void);

/* It is emulated, or has sanitizers. */
bool is_slow(void);

/* How many of n rounds by chance: all in plain builds, a tenth where it is slow. */
int chance_rounds(int n);

#endif
