/* room: hosttree */
/* Any bytes as host.tree text: refused with a sentence, or a folder whose capture succeeds. Nothing
 * appears beside it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hosttree/hosttree.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void capture(const char *folder)
{
	_cleanup_strbuf_ struct strbuf plain = STRBUF_INIT, scrubbed = STRBUF_INIT;
	struct sysroot *root = NULL;
	struct err err = { 0 };

	assert(!sysroot_open(folder, &root, &err));
	assert(!hosttree_capture(root, false, &plain, &err));
	assert(!hosttree_capture(root, true, &scrubbed, &err));
	sysroot_close(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *outer = fixture_folder();
	_cleanup_free_ char *folder = xasprintf("%s/in", outer);
	struct err err = { 0 };
	struct stat st;

	assert(!mkdir(folder, 0755));
	if (!hosttree_unpack((const char *)data, size, folder, &err))
		capture(folder);
	else
		assert(err.code && *err.msg);
	assert(!stat(outer, &st) && st.st_nlink <= 3);
	fixture_remove_tree(outer);
	return 0;
}
