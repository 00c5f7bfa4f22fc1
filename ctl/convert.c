/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <string.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/input.h"
#include "ctl/output.h"
#include "ctl/rewrite.h"

/* --version= and --compress=, and what the one says of the other */
static bool choose(const struct ctl *ctl, struct rewrite *w)
{
	const char *version = ctl->to_version, *compress = ctl->compress;

	if (version && strcmp(version, "6") != 0 && strcmp(version, "7") != 0)
		(void)ctl_complain(ctl, "--version=: 6 or 7 is wanted: \"%s\"", version);
	else if (compress && strcmp(compress, "no") != 0 && strcmp(compress, "zstd") != 0)
		(void)ctl_complain(ctl, "--compress=: no or zstd is wanted: \"%s\"", compress);
	else if (version && *version == '6' && compress && *compress == 'z')
		(void)ctl_complain(ctl, "version 6 cannot be compressed: --compress=zstd needs "
					"--version=7");
	else {
		w->compress = compress ? *compress == 'z' : version && *version == '7';
		w->version = version ? (unsigned)(*version - '0') : w->compress ? 7 : 6;
		return true;
	}
	return false;
}

static int convert_to(struct rewrite *w, struct out_file *out, struct fault *why)
{
	_cleanup_(new_file_done) struct new_file spool = {.fd = -EBADF};
	int r, published = 0;

	/* Version 7 is not written front to back */
	if (out->kind != OUT_FILE_NEW && w->version == 7) {
		r = spool_open(&spool, why);
		if (r < 0)
			return r;
	}
	w->out_fd = out->fd;
	w->spool_fd = spool.fd;
	r = rewrite_file(w);
	if (r >= 0)
		published = out_file_publish(out, why);
	return published < 0 ? published : r;
}

static int convert_file(const struct ctl *ctl, struct rewrite *w, const char *path,
			struct fault *why)
{
	_cleanup_(out_file_done) struct out_file out = {.fd = -EBADF, .file = {.fd = -EBADF}};
	_cleanup_(input_done) struct input input;
	int r = input_open(&input, path, why);

	if (r >= 0)
		r = out_file_open(&out, ctl->output, input.fd, "convert", OUT_FILE_BINARY, why);
	if (r < 0)
		return r;
	w->name = input.name;
	w->in_fd = input.fd;
	return convert_to(w, &out, why);
}

enum ctl_status verb_convert(struct ctl *ctl, int argc, char **argv)
{
	struct rewrite work = {};
	struct fault why = {};
	int r;

	if (argc != 2)
		return ctl_complain(ctl, "one FILE is wanted, or - for standard input");
	if (ctl->host)
		return ctl_complain(ctl, "works on local files, not with -H");
	if (!ctl->output)
		return ctl_complain(ctl, "--output= is missing");
	if (!choose(ctl, &work))
		return CTL_USAGE;
	(void)signal(SIGPIPE, SIG_IGN);
	r = convert_file(ctl, &work, argv[1], &why);
	if (why.error)
		log_error("%s", why.text);
	return r == 0 ? CTL_DONE : CTL_FAILED;
}
