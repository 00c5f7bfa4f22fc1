/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/confine.h"
#include "ctl/rewrite.h"
#include "formats/own-section.h"
#include "writer/copy.h"
#include "writer/pack.h"
#include "writer/unpack.h"

/* How the other process ended */
enum {
	WRITTEN,
	DAMAGED,
	FAILED,
};

static void rewrite_told(void *userdata, const char *line)
{
	unsigned *n_told = userdata;

	log_error("%s", line);
	(*n_told)++;
}

static int rewrite_pack(const struct rewrite *w, const struct trace_dat *dat, unsigned *n_told,
			struct fault *why)
{
	const struct pack_options options = {
		.level = w->compress ? PACK_LEVEL : 0,
		.chunk = PACK_CHUNK,
		.check = true,
		.told = rewrite_told,
		.userdata = n_told,
	};
	struct pack_result result;
	int r = pack_file(dat, w->spool_fd >= 0 ? w->spool_fd : w->out_fd, &options, &result, why);

	if (r >= 0 && w->spool_fd >= 0)
		r = copy_trace(w->spool_fd, w->name, w->out_fd, NULL, why);
	return r;
}

static int rewrite_unpack(const struct rewrite *w, const struct trace_dat *dat, unsigned *n_told,
			  struct fault *why)
{
	const struct unpack_options options = {
		.told = rewrite_told,
		.userdata = n_told,
		.progress = w->progress,
	};

	return unpack_file(dat, w->out_fd, &options, why);
}

/* What the files said by themselves has its place in the file, which would be another one */
static int refuse_merged(const struct trace_dat *dat, struct fault *why)
{
	_cleanup_free_ uint8_t *hosts = NULL;
	struct fault damage;
	size_t size;

	return own_section_read(dat, OWN_HOSTS, &hosts, &size, &damage) < 0
		       ? 0
		       : fault_set(why, -EINVAL,
				   "%s: is merged from other files; convert these, and merge them "
				   "again",
				   dat->path);
}

static int rewrite_confined(void *userdata)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	const struct rewrite *w = userdata;
	struct fault why = {};
	unsigned n_told = 0;
	int r = trace_dat_open_fd(w->in_fd, w->name, &dat, &why);

	if (r >= 0)
		r = refuse_merged(dat, &why);
	if (r >= 0) {
		STRV_FOREACH (line, dat->damages.lines)
			rewrite_told(&n_told, *line);
		r = w->version == 7 ? rewrite_pack(w, dat, &n_told, &why)
				    : rewrite_unpack(w, dat, &n_told, &why);
	}
	if (r < 0)
		log_error("%s", why.text);
	return r < 0 ? FAILED : n_told > 0 ? DAMAGED : WRITTEN;
}

int rewrite_file(const struct rewrite *rewrite)
{
	struct rewrite copy = *rewrite;
	int r = ctl_confined(rewrite->name, NULL, rewrite_confined, &copy);

	if (r < 0)
		return r;
	return r == WRITTEN ? 0 : r == DAMAGED ? REWRITE_E_DAMAGED : -EIO;
}
