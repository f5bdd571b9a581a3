/*
 * PodResources' last answer about every pod, kept up to date by its later answers about single
 * pods: the holder of each GPU, without another List.
 */
#ifndef RAILMATE_PODS_HOLDERS_H
#define RAILMATE_PODS_HOLDERS_H

#include <stdbool.h>

#include "kubemsg/messages.h"

struct holders;
struct spec_candidates;
struct spec_list;

struct holders *pods_holders_new(void);
void pods_holders_free(struct holders *h); /* NULL is fine */
/* For kubeclient_podres_subscribe(). An answer to a question before the last List is no news. */
void pods_holders_hear(void *holders, const struct pods_said *said);
bool pods_holders_listed(const struct holders *h); /* was there a List? */
/* Was there a List, and does every pod hold all that it asks for, but those whose turn it may be?
 * If not, another List knows more. */
bool pods_holders_complete(const struct holders *h, const struct spec_list *specs,
			   const struct spec_candidates *next);
/* Until the next change. exist: only these pods go on holding something; NULL: not known. */
const struct pod_list *pods_holders_view(struct holders *h, const struct spec_list *exist);

#endif
