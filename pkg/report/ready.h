/*
 * Ready: the machine was looked at, and the rest of the start is done within milliseconds, as soon
 * as another railmated has ended or a kubelet asks. Reported in a file, for the probe of a pod
 * (railmatectl ready), and to systemd (sd_notify(3)).
 */
#ifndef RAILMATE_REPORT_READY_H
#define RAILMATE_REPORT_READY_H

struct ready {
	const char *file; /* borrowed; NULL: none */
	char *systemd;	  /* NULL: none, or it has the word */
};

/* Takes $NOTIFY_SOCKET out of the environment, so before other threads run. A file of an earlier
 * process is removed. A failure is a warning in the log. */
void ready_begin(struct ready *ret, const char *file);
/* how: one word for the file, "waiting" or "serving". May be called again. */
void ready_say(struct ready *r, const char *how);
void ready_end(struct ready *r);

#endif
