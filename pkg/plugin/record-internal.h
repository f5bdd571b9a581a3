/* A grant of Allocate on its way into the ledger, and what PreStartContainer adds. */
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
	struct choice *choice; /* NULL: the kubelet did not ask, or took others */
	const struct pool_dev **devs;
	size_t n_devs;	    /* in the arena of plugin_record_begin() */
	uint64_t decision;  /* its number, by plugin_record_commit(); 0 none */
	const char **nodes; /* the verbs node that the answer has for each, "uverbs5"; NULL */
};

/* choice is taken. */
void plugin_record_begin(struct record *r, struct plugin *p, struct choice *choice,
			 const struct ids *ids, struct arena *a);
void plugin_record_answer(struct record *r, const struct edits *edits,
			  struct arena *a); /* what the container is given */
void plugin_record_commit(struct record *r, struct plugin *p);

/* What one Allocate gave. */
struct given {
	struct record record;
	struct grant grant;
	struct gpu_set gpus;
};
struct grants {
	TAILQ_ENTRY(grants) link;
	struct arena *arena; /* this is in it, and all that is beyond the reply */
	struct given *v;
	size_t n;
};
struct grants *plugin_grants_new(void);
void plugin_grants_free(struct grants *grants);

/* These VFs, as the machine shows them now. */
struct holds_vf *plugin_record_facts(struct plugin *p, const struct pool_dev *const *devs, size_t n,
				     struct arena *a);
/* The same ids in the order of their bytes. */
struct ids plugin_sorted(const struct ids *ids, struct arena *a);

#endif
