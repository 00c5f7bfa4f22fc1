/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/strv.h"
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

/* Version 7 is not written front to back */
static int open_spool(struct new_file *spool, struct fault *why)
{
	const char *directory = getenv("TMPDIR");
	_cleanup_free_ char *path =
		strf("%s/flyrec", directory && *directory ? directory : "/var/tmp");
	int r = path ? new_file_open(spool, path, 0600) : -ENOMEM;

	return r < 0 ? fault_errno(why, r, "%s: cannot create a temporary file", path ? path : "")
		     : 0;
}

static int convert_to(struct rewrite *w, struct out_file *out, struct fault *why)
{
	_cleanup_(new_file_done) struct new_file spool = {.fd = -EBADF};
	int r, published = 0;

	if (out->kind != OUT_FILE_NEW && w->version == 7) {
		r = open_spool(&spool, why);
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

enum ctl_status verb_convert(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_close_ int fd = -EBADF;
	struct rewrite work = {.name = argv[1]};
	struct fault why = {};
	struct out_file out;
	int r;

	if (argc != 2)
		return ctl_complain(ctl, "one FILE is wanted");
	if (ctl->host)
		return ctl_complain(ctl, "works on local files, not with -H");
	if (!ctl->output)
		return ctl_complain(ctl, "--output= is missing");
	if (!choose(ctl, &work))
		return CTL_USAGE;
	(void)signal(SIGPIPE, SIG_IGN);
	work.in_fd = fd = io_open_at(AT_FDCWD, argv[1], 0);
	if (fd < 0) {
		log_error("%s: cannot open: %s", argv[1], strerror(-fd));
		return CTL_FAILED;
	}
	r = out_file_open(&out, ctl->output, fd, "convert", OUT_FILE_BINARY, &why);
	if (r >= 0)
		r = convert_to(&work, &out, &why);
	if (why.error)
		log_error("%s", why.text);
	out_file_done(&out);
	return r == 0 ? CTL_DONE : CTL_FAILED;
}
