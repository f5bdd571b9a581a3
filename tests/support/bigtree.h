/* A large regular machine as host.tree text: every PF and every GPU behind one switch of its own
 * pair. */
#ifndef RAILMATE_TESTS_SUPPORT_BIGTREE_H
#define RAILMATE_TESTS_SUPPORT_BIGTREE_H

struct strbuf;

/*
 * pfs PFs (at most 64) with vfs VFs (at most 127) each and gpus GPUs, spread over two sockets.
 * Switch i holds PF i and the GPUs i, i + pfs, …. Every VF has a driver, netdev, RDMA device and
 * uverbs node. Addresses: PF i is 0000:<16 + 4i hex>:00.0 on bus b, VF n has routing id PF + 1 + n,
 * GPUs sit on bus b + 1.
 */
void bigtree_write(int pfs, int vfs, int gpus, struct strbuf *out);

#endif
