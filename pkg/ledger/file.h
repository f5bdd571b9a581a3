/*
 * The ledger's file: DIR/ledger.json, replaced by rename with fsync of file and directory, so that
 * a kill or a power cut leaves the old text or the new one. One daemon at a time: DIR/lock.
 */
#ifndef RAILMATE_LEDGER_FILE_H
#define RAILMATE_LEDGER_FILE_H

#include <stddef.h>

struct err;
struct ledger;
struct ledger_file;
struct ledger_writer;

#define STATE_DIR	 "/var/lib/railmate" /* DIR by default */
#define LEDGER_BYTES_MAX (64u << 20)	     /* a file that is larger is not ours */

/* Makes DIR (0700) if need be and takes the lock, waiting up to wait_ms for another process to let
 * it go; then -EBUSY with a sentence that names its pid (as that process sees itself, and its host
 * name if that is another one: it may live in another container). */
int ledger_file_open(const char *dir, unsigned wait_ms, struct ledger_file **ret, struct err *err);
void ledger_file_close(struct ledger_file *f); /* NULL is fine */
/*
 * A missing file is not a ledger (ret NULL). A torn, foreign or later one is renamed to
 * ledger.json.<bad|later>-<unix time> and a sentence goes to ret_note (malloc'ed; NULL when all is
 * well): there is none then, either, and it has to be rebuilt. Of the files set aside the newest
 * four are kept. Negative: the disk failed.
 */
int ledger_file_load(struct ledger_file *f, struct ledger **ret, char **ret_note, struct err *err);
/* Without lock, for railmatectl while no daemon runs: -ENOENT when there is none. */
int ledger_file_peek(const char *dir, struct ledger **ret, struct err *err);
/* Durable when it returns 0. On failure (full disk) the old file is removed: the change that was
 * not stored made it wrong, and no ledger is better than an old one. Any thread, one at a time. */
int ledger_file_store(struct ledger_file *f, const char *text, size_t len, struct err *err);

/* A thread that stores, so that no thread but this one waits for the disk. One that cannot be
 * started (the limit of pids) is tried again with each text. */
struct ledger_writer *ledger_writer_start(struct ledger_file *f);
/* text (malloc'ed) is taken. done(arg, err) on the writer's thread, exactly once, when it is on
 * disk (err NULL), or could not be stored; at once, on the caller's thread, where the writer's
 * could not be started. Not before the done() of the text before. */
void ledger_writer_put(struct ledger_writer *w, char *text, size_t len,
		       void (*done)(void *arg, const struct err *err), void *arg);
void ledger_writer_stop(struct ledger_writer *w); /* stores the rest, then joins; NULL is fine */

#endif
