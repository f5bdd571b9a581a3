/*
 * Rate limits of VFs, which an administrator sets on their PF. Some drivers show them in files of
 * the PF, sriov/<index>/ (hw/driver.h). The kernel's own drivers have no such files; the running
 * kernel is asked then, once for all VFs of a PF.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "discover/scan-internal.h"
#include "hw/driver.h"
#include "hw/vfadmin.h"
#include "netlink/netlink.h"

#define DEVICES "sys/bus/pci/devices"

/* -ENOENT: it has no rate. */
static int read_file(struct scan *s, const struct dir *sriov, int index,
		     const struct hw_rate_file *file, int *ret)
{
	char path[64], text[1024], *value = text;

	snprintf(path, sizeof(path), "%d/%s", index, file->name);
	if (dir_read(sriov, path, text, sizeof(text)) < 0)
		return -ENOENT;
	if (file->line) {
		const char *line = hw_rate_line(file, text);

		value = line ? strchr(line, ':') : NULL;
		if (!value)
			return -ENOENT;
		value++;
		value[strcspn(value, "\n")] = '\0';
	}
	if (!str_to_int(str_trim(value), ret) && *ret >= 0)
		return 0;
	if (!file->line)
		return -ENOENT; /* explains to a person how to write one */
	scan_note_value(s, sriov, path, str_trim(value));
	return -EINVAL;
}

/* The first VF of the PF behind `after`; NULL: no more. */
static struct hw_pci *next_vf(struct scan *s, int pf, struct hw_pci *after)
{
	for (struct hw_pci *f = after ? after + 1 : s->pci; f < s->pci + s->n_pci; f++) {
		if (f->physfn == pf && f->vf_index >= 0)
			return f;
	}
	return NULL;
}

/* False: there are no files about it. */
static bool take_files(struct scan *s, int pf)
{
	_cleanup_dir_ struct dir sriov = DIR_CLOSED;
	const struct hw_driver *driver = hw_driver_find(s->pci[pf].driver);
	char path[sizeof(DEVICES) + BDF_STRLEN + 16], addr[BDF_STRLEN];
	bool found = false;

	snprintf(path, sizeof(path), DEVICES "/%s/sriov", bdf_format(s->pci[pf].bdf, addr));
	if (dir_open_path(s->root, path, &sriov) < 0)
		return false;
	for (struct hw_pci *vf = next_vf(s, pf, NULL); vf; vf = next_vf(s, pf, vf)) {
		int rate, r = -ENOENT;

		for (size_t i = 0; r == -ENOENT && i < hw_rate_files_n; i++) {
			if (!driver || !driver->rate || driver->rate == &hw_rate_files[i])
				r = read_file(s, &sriov, vf->vf_index, &hw_rate_files[i], &rate);
		}
		if (r == 0)
			vf->rate_mbps = rate;
		found |= r != -ENOENT;
	}
	return found;
}

static void take_answer(struct scan *s, int pf)
{
	_cleanup_arena_ struct arena *arena = arena_new(16 * 1024);
	const struct hw_vf_admin *vfs = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r = netlink_vfs(s->pci[pf].netdev, arena, &vfs, &n, &err);

	if (r < 0 && r != -ENODEV && r != -ENOTSUP)
		scan_note(s, "%s; their rate limits are unknown", err.msg);
	for (struct hw_pci *vf = next_vf(s, pf, NULL); vf && n; vf = next_vf(s, pf, vf)) {
		/* By index as a rule, so the first try hits. */
		size_t i = (size_t)vf->vf_index < n && vfs[vf->vf_index].index == vf->vf_index
				   ? (size_t)vf->vf_index
				   : 0;

		while (i < n && vfs[i].index != vf->vf_index)
			i++;
		if (i < n && vfs[i].max_mbps > 0)
			vf->rate_mbps = vfs[i].max_mbps;
	}
}

void scan_rates(struct scan *s)
{
	for (size_t i = 0; i < s->n_pci; i++) {
		const struct hw_pci *f = &s->pci[i];

		if (f->sriov_num > 0 && hw_is_pf(f) && !take_files(s, (int)i) && f->netdev &&
		    sysroot_is_live(s->root))
			take_answer(s, (int)i);
	}
}
