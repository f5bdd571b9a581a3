/* A grant of Allocate → the ledger, with the additions of PreStartContainer. */
#ifndef RAILMATE_PLUGIN_RECORD_INTERNAL_H
#define RAILMATE_PLUGIN_RECORD_INTERNAL_H

#include "hw/inventory.h"
#include "plugin/plugin-internal.h"
#include "choice/choice.h"
#include "render/render.h"

struct edits;
struct holds_vf;
struct pool_dev;

struct record {
	struct node *node;     /* owns the devices */
	struct choice *choice; /* NULL: the kubelet did not ask, or took other VFs */
	const struct pool_dev **devs;
	size_t n_devs;	    /* in the arena of plugin_record_begin() */
	uint64_t decision;  /* its number, by plugin_record_commit(); 0 none */
	const char **nodes; /* the answer's verbs node of each dev, "uverbs5"; NULL */
};

/* choice is taken. */
void plugin_record_begin(struct record *r, struct plugin *p, struct choice *choice,
			 const struct ids *ids, struct arena *a);
void plugin_record_answer(struct record *r, const struct edits *edits,
			  struct arena *a); /* edits: of the container's answer */
void plugin_record_commit(struct record *r, struct plugin *p);

/* One container's grant. */
struct given {
	struct record record;
	struct grant grant;
	struct gpu_set gpus;
};
struct grants {
	TAILQ_ENTRY(grants) link;
	struct arena *arena; /* holds this struct, and all that outlives the reply */
	struct given *v;
	size_t n;
};
struct grants *plugin_grants_new(void);
void plugin_grants_free(struct grants *grants);

/* The present facts of these VFs. */
struct holds_vf *plugin_record_facts(struct plugin *p, const struct pool_dev *const *devs, size_t n,
				     struct arena *a);
/* The same ids in the order of their bytes. */
struct ids plugin_sorted(const struct ids *ids, struct arena *a);

#endif
