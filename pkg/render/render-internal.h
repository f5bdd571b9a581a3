/* What the files of this room share. */
#ifndef RAILMATE_RENDER_INTERNAL_H
#define RAILMATE_RENDER_INTERNAL_H

#include "render/render.h"

struct strbuf;

/* Appends to edits->envs; room for `max` entries was made by the caller. */
void add_env(struct edits *edits, const char *key, const char *value);

/* PCIDEVICE_*: what sriov-network-device-plugin sets. */
void render_peer_env(const struct grant *grant, struct arena *arena, struct edits *edits);
/* RAILMATE_*: the facts of the grant. */
void render_fact_env(const struct grant *grant, struct arena *arena, struct edits *edits);
/* NCCL_*. */
int render_nccl_env(const struct grant *grant, struct arena *arena, struct edits *edits, struct err *err);

/* The port NCCL should use: the first ACTIVE one, else the first. */
int grant_port(const struct grant *grant, const struct grant_dev *dev);
/* "mlx5_4:1" */
void put_hca(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev);
/* "/dev/infiniband/uverbs4" */
const char *verbs_node(const struct grant_dev *dev, struct arena *arena);
enum hw_link grant_link(const struct grant *grant, const struct grant_dev *dev);

#endif
