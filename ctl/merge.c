/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/out-file.h"
#include "basic/strv.h"
#include "ctl/confine.h"
#include "ctl/output.h"
#include "writer/merge.h"

/* How the other process ended */
enum {
	MERGED,
	DAMAGED,
	FAILED,
};

struct merging {
	struct merge_input *inputs;
	size_t n;
	char **hosts; /* [n]: those that were given */
	int out_fd;
};

static void merging_done(struct merging *m)
{
	for (size_t i = 0; m->inputs && i < m->n; i++)
		close(m->inputs[i].fd);
	for (size_t i = 0; m->hosts && i < m->n; i++)
		free(m->hosts[i]);
	free(m->inputs);
	free(m->hosts);
}

static void merge_told(void *userdata, const char *line)
{
	unsigned *n_told = userdata;

	log_error("%s", line);
	(*n_told)++;
}

static void tell(const struct merge_report *report)
{
	(void)fputs(report->text, stdout);
	if (report->n_apart > 0)
		log_notice("merge: %zu of the files %s nothing of the time of the others",
			   report->n_apart, report->n_apart == 1 ? "has" : "have");
	if (report->symbols_differ)
		log_notice(
			"merge: kernel symbols differ; trace-cmd and KernelShark show addresses as "
			"numbers");
	if (report->shared_names > 0)
		log_notice("merge: %zu pids are different tasks on different hosts; trace-cmd and "
			   "KernelShark show the names of all",
			   report->shared_names);
}

static int merge_confined(void *userdata)
{
	const struct merging *m = userdata;
	unsigned n_told = 0;
	const struct merge_options options = {.told = merge_told, .userdata = &n_told};
	struct merge_report report;
	struct fault why;
	int r = merge_files(m->inputs, m->n, m->out_fd, &options, &report, &why);

	if (r < 0) {
		log_error("merge: %s", why.text);
		return FAILED;
	}
	tell(&report);
	merge_report_done(&report);
	return n_told > 0 ? DAMAGED : MERGED;
}

/* "HOST=FILE", but not a path that has such a sign */
static int open_input(struct merging *m, size_t i, const char *word)
{
	const size_t n = strcspn(word, "=/");

	if (n > 0 && word[n] == '=') {
		m->hosts[i] = strndup(word, n);
		if (!m->hosts[i])
			return log_error_errno(-ENOMEM, "merge: %m");
		word += n + 1;
	}
	m->inputs[i] = (struct merge_input){
		.path = word, .host = m->hosts[i], .fd = io_open_at(AT_FDCWD, word, 0)};
	if (m->inputs[i].fd < 0)
		return log_error_errno(m->inputs[i].fd, "%s: cannot open: %m", word);
	m->n++;
	return 0;
}

/* "HOST:N" */
static int take_offset(struct ctl *ctl, const struct merging *m, const char *word)
{
	const char *colon = strrchr(word, ':');
	int64_t offset;
	char *end;
	bool any = false;

	errno = 0;
	offset = colon ? strtoll(colon + 1, &end, 10) : 0;
	if (!colon || colon == word || end == colon + 1 || *end || errno)
		return ctl_complain(ctl, "--tsc-offset=: not understood: \"%s\"", word);
	for (size_t i = 0; i < m->n; i++)
		if (m->hosts[i] && strlen(m->hosts[i]) == (size_t)(colon - word) &&
		    strncmp(m->hosts[i], word, (size_t)(colon - word)) == 0) {
			m->inputs[i].tsc_offset = offset;
			m->inputs[i].has_tsc_offset = any = true;
		}
	return any ? 0
		   : ctl_complain(ctl, "--tsc-offset=%s: there is no %.*s=FILE", word,
				  (int)(colon - word), word);
}

/* None of the inputs is replaced: each is open, and the new file has a name when it is complete */
static int merge_to(struct ctl *ctl, struct merging *m, struct fault *why)
{
	_cleanup_(out_file_done) struct out_file out = {.fd = -EBADF, .file = {.fd = -EBADF}};
	int r = out_file_open(&out, ctl->output, m->inputs[0].fd, "merge", OUT_FILE_BINARY, why);

	for (size_t i = 1; i < m->n && r >= 0; i++) {
		struct out_file other;

		r = out_file_choose(&other, ctl->output, m->inputs[i].fd, "merge", OUT_FILE_BINARY,
				    why);
	}
	if (r < 0)
		return r;
	if (out.kind != OUT_FILE_NEW)
		return fault_set(why, -EINVAL,
				 "%s: a file is wanted: a merged one is not written "
				 "front to back",
				 ctl->output);
	m->out_fd = out.fd;
	r = ctl_confined(m->inputs[0].path, NULL, merge_confined, m);
	if (r < 0 || r == FAILED)
		return r < 0 ? r : -EIO;
	if (out_file_publish(&out, why) < 0)
		return why->error;
	return r;
}

enum ctl_status verb_merge(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_(merging_done) struct merging m = {};
	struct fault why = {};
	int r = 0;

	if (argc < 3)
		return ctl_complain(ctl, "two FILEs are wanted, or more");
	if (ctl->host)
		return ctl_complain(ctl, "works on local files, not with -H");
	if (!ctl->output)
		return ctl_complain(ctl, "--output= is missing");
	m.inputs = calloc((size_t)argc, sizeof(*m.inputs));
	m.hosts = calloc((size_t)argc, sizeof(*m.hosts));
	if (!m.inputs || !m.hosts)
		r = log_error_errno(-ENOMEM, "merge: %m");
	for (int i = 1; i < argc && r >= 0; i++)
		r = open_input(&m, m.n, argv[i]);
	STRV_FOREACH (word, ctl->tsc_offsets)
		if (r >= 0 && take_offset(ctl, &m, *word) != 0)
			return CTL_USAGE;
	if (r >= 0)
		r = merge_to(ctl, &m, &why);
	if (why.error)
		log_error("merge: %s", why.text);
	return r == MERGED ? CTL_DONE : CTL_FAILED;
}
