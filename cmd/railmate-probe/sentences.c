/*
 * The kinds of trouble that railmate-probe knows, each with its usual cause and its fix.
 * docs/probe.md has them all.
 */
#include <assert.h>
#include <string.h>

#include "report.h"

const struct sentence sentences[] = {
	{ "no-map", "no VF of railmate is in this container, or its image lies over /run/railmate",
	  "Ask for VFs in resources.limits, and mount nothing at /run/railmate" },
	{ "no-hca", "the pool serves VFs without RDMA, or the driver made no RDMA device",
	  "Look at railmatectl doctor on the node" },
	{ "no-gpu",
	  "the container asked for none, or railmate could not know them (notes in map.json)",
	  "Ask for GPUs in resources.limits of the same container" },
};
const size_t n_sentences = sizeof(sentences) / sizeof(*sentences);

const struct sentence *sentence_of(const char *id)
{
	for (size_t i = 0; i < n_sentences; i++) {
		if (strcmp(sentences[i].id, id) == 0)
			return &sentences[i];
	}
	assert(!"a kind of trouble without a sentence");
	return &sentences[0];
}
