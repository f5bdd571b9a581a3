/*
 * The switches that the NICs are connected to, from a file that the node's own lldpcli writes:
 * docs/design/lldp.md. Its content comes from any device that sends LLDP on the cable.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "discover/lldp.h"
#include "discover/scan-internal.h"
#include "document/document.h"

#define FILE_MAX      (1 << 20)
#define NEIGHBORS_MAX 4096
#define NAME_LEN_MAX  255 /* of a TLV's text, IEEE 802.1AB */

/* Others must not be able to make up where the NICs are; a captured tree has no owner. */
static int check_file(const struct sysroot *root, const struct stat *st, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "is not a regular file");
	if (sysroot_is_live(root) && (st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(
			err, EPERM,
			"belongs to user %u and has mode %04o; it has to be root's, and not writable by others",
			st->st_uid, st->st_mode & 07777);
	if (st->st_size > FILE_MAX)
		return err_set(err, EFBIG, "is larger than %d bytes", FILE_MAX);
	return 0;
}

static int read_text(const struct sysroot *root, struct strbuf *text, struct err *err)
{
	_cleanup_close_ int fd = sysroot_openat(root, O_RDONLY | O_NONBLOCK, LLDP_FILE);
	struct stat st;
	char piece[4096];
	ssize_t n = 1;
	int r;

	if (fd == -ENOENT)
		return fd;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, fd < 0 ? -fd : errno, "%s", strerror(fd < 0 ? -fd : errno));
	r = check_file(root, &st, err);
	if (r < 0)
		return r;
	while (n > 0 && text->len <= FILE_MAX) {
		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			strbuf_add(text, piece, (size_t)n);
	}
	return n < 0 ? err_set(err, errno, "%s", strerror(errno)) : 0;
}

static const struct item *first(const struct item *object, const char *key)
{
	const struct item *list = object ? item_get(object, key) : NULL;

	return list && list->type == ITEM_LIST && list->n_kids ? list->kids : NULL;
}

/* key: [ { "value": … } ]; NULL: nothing that a terminal may be shown. */
static const char *value_of(const struct item *object, const char *key, struct arena *arena)
{
	const struct item *item = first(object, key);
	const char *text = item ? item_string(item, "value") : NULL;
	size_t len = text ? strlen(text) : 0;

	if (!len || len > NAME_LEN_MAX)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return NULL;
	}
	return arena_strdup(arena, text);
}

static struct lldp_entry entry_of(const struct item *item, const char *interface,
				  struct arena *arena)
{
	const struct item *chassis = first(item, "chassis"), *port = first(item, "port");
	const struct item *id = first(port, "id");
	bool named = first(chassis, "name");
	/* A MAC address names a port less well than the text beside it. */
	bool is_mac = id && str_eq(item_string(id, "type"), "mac") && first(port, "descr");

	return (struct lldp_entry) {
		.interface = arena_strdup(arena, interface),
		.name = value_of(chassis, named ? "name" : "id", arena),
		.port = value_of(port, is_mac ? "descr" : "id", arena),
	};
}

static int add_entries(const struct item *list, struct arena *arena, struct lldp_entry *ret,
		       size_t *n, struct err *err)
{
	for (size_t i = 0; list && i < list->n_kids; i++) {
		const char *interface = item_string(&list->kids[i], "name");

		if (!interface || !str_eq(item_string(&list->kids[i], "via"), "LLDP"))
			continue;
		if (*n == NEIGHBORS_MAX)
			return err_set(err, EFBIG, "has more than %d neighbours", NEIGHBORS_MAX);
		ret[(*n)++] = entry_of(&list->kids[i], interface, arena);
	}
	return 0;
}

int lldp_read(const struct sysroot *root, struct arena *arena, struct lldp_entry **ret,
	      size_t *ret_n, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(64 * 1024);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct lldp_entry *entries;
	const struct item *document, *hosts;
	size_t n = 0;
	int r = read_text(root, &text, err);

	if (r < 0)
		return r;
	r = document_parse(strbuf_str(&text), text.len, "lldp.json", scratch, &document, err);
	if (r < 0)
		return r;
	hosts = item_get(document, "lldp");
	if (!hosts || hosts->type != ITEM_LIST)
		return err_set(err, EINVAL, "is not what lldpcli -f json0 show neighbors writes");
	entries = arena_array(arena, NEIGHBORS_MAX, sizeof(*entries));
	for (size_t i = 0; !r && i < hosts->n_kids; i++)
		r = add_entries(item_get(&hosts->kids[i], "interface"), arena, entries, &n, err);
	if (r < 0)
		return r;
	*ret = entries;
	*ret_n = n;
	return 0;
}

static void add_neighbor(struct scan *s, int pci, const char *name, const char *port)
{
	s->neighbor = xgrow(s->neighbor, &s->cap_neighbor, s->n_neighbor + 1, sizeof(*s->neighbor));
	s->neighbor[s->n_neighbor++] = (struct hw_neighbor) { pci, arena_strdup(s->arena, name),
							      arena_strdup(s->arena, port) };
}

/* How many different neighbours the interface has; *ret: the last of them. */
static size_t find_entries(const struct lldp_entry *entries, size_t n, const char *netdev,
			   struct lldp_entry *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!str_eq(entries[i].interface, netdev))
			continue;
		found += !found || !str_eq(entries[i].name, ret->name) ||
			 !str_eq(entries[i].port, ret->port);
		*ret = entries[i];
	}
	return found;
}

/* A switch is silent when a link is lost, but the cable is where it was. */
static void keep_neighbor(struct scan *s, int pci, const struct hw_inventory *before)
{
	int was = before ? hw_find_pci(before, s->pci[pci].bdf) : -1;
	const struct hw_neighbor *known = was < 0 ? NULL : hw_find_neighbor(before, was);

	if (known && str_eq(before->pci[was].netdev, s->pci[pci].netdev))
		add_neighbor(s, pci, known->name, known->port);
}

static void find_neighbor(struct scan *s, int pci, const struct lldp_entry *entries, size_t n,
			  const struct hw_inventory *before)
{
	const char *netdev = s->pci[pci].netdev;
	struct lldp_entry entry = { 0 };
	size_t found = find_entries(entries, n, netdev, &entry);

	if (found > 1)
		scan_note(s, LLDP_FILE ": %s has %zu neighbours; none is taken for its switch",
			  netdev, found);
	else if (found && (!entry.name || !entry.port))
		scan_note(s, LLDP_FILE ": the neighbour of %s has no name or port of plain text",
			  netdev);
	else if (found)
		add_neighbor(s, pci, entry.name, entry.port);
	else if (s->pci[pci].carrier == 0)
		keep_neighbor(s, pci, before);
}

void scan_neighbors(struct scan *s, const struct hw_inventory *before)
{
	_cleanup_arena_ struct arena *arena = arena_new(8 * 1024);
	struct lldp_entry *entries = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r = lldp_read(s->root, arena, &entries, &n, &err);

	if (r == -ENOENT)
		return;
	if (r < 0)
		scan_note(s, LLDP_FILE " is not used: %s", err.msg);
	for (size_t i = 0; i < s->n_pci; i++) {
		if (!hw_is_nic(&s->pci[i]) || s->pci[i].is_vf || !s->pci[i].netdev)
			continue;
		if (r < 0)
			keep_neighbor(s, (int)i, before);
		else
			find_neighbor(s, (int)i, entries, n, before);
	}
}
