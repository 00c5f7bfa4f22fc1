/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/now.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/remote.h"

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

static int cat_here(struct ctl *ctl, char **argv, const struct out_file *out)
{
	int r = bus_find_session(ctl, argv[1], NULL);

	begin_usec = now_usec(CLOCK_MONOTONIC);
	if (r >= 0)
		r = output_copy(ctl, argv[1], argv[2], out,
				isatty(STDERR_FILENO) ? show_progress : NULL);
	/* maybe by another process */
	if (isatty(STDERR_FILENO) && now_usec(CLOCK_MONOTONIC) - begin_usec >= USEC_PER_SEC)
		(void)fprintf(stderr, "\r%*s\r", BAR_WIDTH + 20, "");
	return r;
}

enum ctl_status verb_cat(struct ctl *ctl, int argc, char **argv)
{
	enum ctl_status result;
	struct out_file out;
	int r = 0;

	if (argc != 3)
		return ctl_complain(ctl, "SESSION and FILE are needed");
	if (ctl->json)
		return ctl_complain(ctl, "--json is not an option of this verb");
	result = output_open(ctl, &out);
	if (result != CTL_DONE)
		return result;
	if (ctl->host)
		result = remote_run(ctl, argv, out.fd);
	else
		r = cat_here(ctl, argv, &out);
	/* what is left of a damaged file is worth having */
	if (r < 0 || (result == CTL_DONE && output_publish(ctl, &out) < 0) || r > 0)
		result = CTL_FAILED;
	out_file_done(&out);
	return result;
}
