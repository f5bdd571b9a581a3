/*
 * What PodResources last said of every pod, kept up to date by what it said of single pods since:
 * who holds which GPUs, without another List.
 */
#ifndef RAILMATE_PODS_HOLDERS_H
#define RAILMATE_PODS_HOLDERS_H

#include <stdbool.h>

#include "kubemsg/messages.h"

struct holders;
struct spec_candidates;
struct spec_list;

struct holders *holders_new(void);
void holders_free(struct holders *h); /* NULL is fine */
/* For podres_subscribe(). What was asked for before the last List is no news. */
void holders_hear(void *holders, const struct pods_said *said);
/* Only pods that exist go on holding something. */
void holders_keep(struct holders *h, const struct spec_list *specs);
/* Was there a List, and does every pod hold what it asks for, but those whose turn it may be? If
 * not, another List knows more. */
bool holders_complete(const struct holders *h, const struct spec_list *specs,
		      const struct spec_candidates *next);
const struct pod_list *holders_view(const struct holders *h); /* until the next change */

#endif
