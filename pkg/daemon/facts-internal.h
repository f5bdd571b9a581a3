/* What the rpc thread knows, copied for metrics, the page and the probes (report/facts.h). */
#ifndef RAILMATE_DAEMON_FACTS_INTERNAL_H
#define RAILMATE_DAEMON_FACTS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct plugin_env;
struct report_facts;
struct served;
struct status_service;
struct arena;

/* served NULL: nothing yet. known: the generation of the ledger that the reader has; UINT64_MAX:
 * none. Free with report_facts_free(). [rpc thread] */
struct report_facts *daemon_facts_new(const struct plugin_env *env, const struct served *served,
				      uint64_t known);

/* Of it, what is served; NULL: nothing yet. closely: as tracker_judge(). In the arena. [rpc thread]
 */
const struct status_service *daemon_service_facts(const struct plugin_env *env,
						  const struct served *served, bool closely,
						  struct arena *a);

#endif
