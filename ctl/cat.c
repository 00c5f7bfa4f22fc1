/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/out-file.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/remote.h"
#include "writer/copy.h"

#define BAR_WIDTH 40

static uint64_t begin_usec, shown_usec;

/* On stderr, ten times a second, once it has taken one */
static void show_progress(uint64_t done, uint64_t total)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);
	int filled = total > 0 ? (int)(done * BAR_WIDTH / total) : 0;
	_cleanup_free_ char *text = NULL;

	if (now - begin_usec < USEC_PER_SEC || now - shown_usec < USEC_PER_SEC / 10)
		return;
	shown_usec = now;
	text = format_bytes(done);
	(void)fprintf(stderr, "\r[%-*.*s] %3d%% %s ", BAR_WIDTH, MIN(filled, BAR_WIDTH),
		      "########################################",
		      total > 0 ? (int)(done * 100 / total) : 0, text ? text : "");
}

static void end_progress(void)
{
	if (shown_usec > 0)
		(void)fprintf(stderr, "\r%*s\r", BAR_WIDTH + 20, "");
}

static enum ctl_status cat_here(struct ctl *ctl, char **argv, int out_fd)
{
	_cleanup_close_ int fd = -EBADF;
	struct fault why = {};
	int r;

	if (bus_find_session(ctl, argv[1], NULL) < 0)
		return CTL_FAILED;
	fd = bus_call_fd(ctl, NULL, NULL, "OpenFile", "ss", argv[1], argv[2]);
	if (fd < 0)
		return CTL_FAILED;
	begin_usec = now_usec(CLOCK_MONOTONIC);
	r = copy_trace(fd, argv[2], out_fd, isatty(STDERR_FILENO) ? show_progress : NULL, &why);
	end_progress();
	if (r < 0)
		log_error("cat: %s", why.text);
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

enum ctl_status verb_cat(struct ctl *ctl, int argc, char **argv)
{
	struct out_file out;
	enum ctl_status result;
	struct fault why;
	int r;

	if (argc != 3)
		return ctl_complain(ctl, "SESSION and FILE are needed");
	if (ctl->json)
		return ctl_complain(ctl, "--json is not an option of this verb");
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that leaves early is an error like others */
	r = out_file_open(&out, ctl->output, -EBADF, "copy", OUT_FILE_BINARY, &why);
	if (r < 0) {
		log_error("cat: %s", why.text);
		return out.kind == OUT_FILE_STANDARD ? CTL_USAGE : CTL_FAILED;
	}
	result = ctl->host ? remote_run(ctl, argv, out.fd) : cat_here(ctl, argv, out.fd);
	if (result == CTL_DONE && out_file_publish(&out, &why) < 0) {
		log_error("cat: %s", why.text);
		result = CTL_FAILED;
	}
	out_file_done(&out);
	return result;
}
