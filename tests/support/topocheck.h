/* What is true of the paths of every machine. */
#ifndef RAILMATE_TESTS_SUPPORT_TOPOCHECK_H
#define RAILMATE_TESTS_SUPPORT_TOPOCHECK_H

struct hw_inventory;
struct topo;

/* Asserts it of t, which was made of inv. */
void topo_check(const struct topo *t, const struct hw_inventory *inv);

#endif
