/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "ctl/verify-arm.h"
#include "ctl/verify-file.h"
#include "ctl/verify.h"
#include "formats/arm-snapshot.h"

struct tally {
	const struct ctl *ctl;
	struct json_object *files; /* NULL unless --json */
	size_t n_files, n_faulty;
};

static int show(struct tally *tally, const struct verify_report *report)
{
	struct json_object *o;

	if (!tally->files) {
		verify_report_print(report, stdout);
		return fflush(stdout) < 0 ? -errno : 0;
	}
	o = verify_report_json(report);
	if (!o || json_object_array_add(tally->files, o) != 0) {
		json_object_put(o);
		return -ENOMEM;
	}
	return 0;
}

/* What verify makes of an open file; a version that is not supported is still named */
static int verify_open(int fd, struct verify_report *report)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct fault why = {};
	int r;

	(void)trace_dat_version(fd, &report->version);
	r = trace_dat_open_fd(fd, report->path, &dat, &why);
	if (r >= 0)
		return verify_dat(dat, report);
	if (r != -ENOMEM)
		verify_report_line(report, why.text);
	return r == -ENOMEM ? r : 0;
}

/* @found: by walking a directory; a file may then be gone by now (rotation, retention) */
static int verify_path(struct tally *tally, const char *path, bool found)
{
	_cleanup_close_ int fd = -EBADF;
	struct verify_report report;
	struct fault why;
	int r;

	fd = io_open_at(AT_FDCWD, path, 0);
	if (fd == -ENOENT && found)
		return 0;
	if (fd < 0)
		(void)fault_errno(&why, fd, "%s: cannot open", path);
	r = verify_report_init(&report, path);
	if (r < 0)
		return r;
	if (fd < 0)
		verify_report_line(&report, why.text);
	else
		r = verify_open(fd, &report);
	if (r >= 0) {
		tally->n_files++;
		tally->n_faulty += !verify_report_ok(&report);
		r = show(tally, &report);
	}
	verify_report_done(&report);
	return r;
}

/* @index: the path of a snapshot.ini */
static int verify_snapshot(struct tally *tally, const char *index, bool found)
{
	size_t n = strlen(index) - strlen(ARM_SNAPSHOT_INI);
	_cleanup_free_ char *dir = n ? strndup(index, n > 1 ? n - 1 : n) : strdup(".");
	_cleanup_close_ int fd = -EBADF;
	struct verify_report report;
	int r;

	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && found)
		return 0;
	if (fd < 0)
		return log_error_errno(-errno, "%s: cannot open: %m", dir);
	r = verify_report_init(&report, dir);
	if (r < 0)
		return r;
	r = verify_arm(fd, &report);
	if (r >= 0) {
		tally->n_files++;
		tally->n_faulty += !verify_report_ok(&report);
		r = show(tally, &report);
	}
	verify_report_done(&report);
	return r;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* A name as the shell's *.dat would take it: names with a dot in front are half-made */
static bool is_dat(const char *name, size_t length)
{
	return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".dat") == 0;
}

/* The index of an Arm snapshot; not of one that is still being made */
static bool is_snapshot(const FTSENT *e)
{
	return strcmp(e->fts_name, ARM_SNAPSHOT_INI) == 0 &&
	       (e->fts_level < 2 || e->fts_parent->fts_name[0] != '.');
}

static int verify_tree(struct tally *tally, char *path)
{
	char *const roots[] = {path, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, by_name);
	FTSENT *e;
	int r = 0;

	if (!fts)
		return log_error_errno(-errno, "%s: cannot open: %m", path);
	while (r == 0 && (errno = 0, e = fts_read(fts))) {
		if (e->fts_info == FTS_F && is_dat(e->fts_name, e->fts_namelen))
			r = verify_path(tally, e->fts_path, true);
		else if (e->fts_info == FTS_F && is_snapshot(e))
			r = verify_snapshot(tally, e->fts_path, true);
		else if ((e->fts_info == FTS_DNR || e->fts_info == FTS_ERR) &&
			 e->fts_errno != ENOENT)
			r = log_error_errno(-e->fts_errno, "%s: cannot open: %m", e->fts_path);
	}
	if (r == 0 && errno)
		r = log_error_errno(-errno, "%s: cannot read: %m", path);
	fts_close(fts);
	return r;
}

static bool is_index(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, ARM_SNAPSHOT_INI) == 0;
}

static int verify_argument(struct tally *tally, char *path)
{
	struct stat st;
	size_t before = tally->n_files;
	int r;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return is_index(path) ? verify_snapshot(tally, path, false)
				      : verify_path(tally, path, false);
	r = verify_tree(tally, path);
	if (r == 0 && tally->n_files == before)
		log_notice("%s: no *.dat file in it, no Arm snapshot", path);
	return r;
}

static int print_json(struct json_object *files)
{
	struct json_object *o = json_object_new_object();
	int r = -ENOMEM;

	if (o && json_object_object_add(o, "files", json_object_get(files)) == 0) {
		const char *text = json_object_to_json_string_ext(
			o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

		if (text)
			r = puts(text) < 0 || fflush(stdout) < 0 ? -errno : 0;
	}
	json_object_put(o);
	return r;
}

enum ctl_status verb_verify(const struct ctl *ctl, int argc, char **argv)
{
	struct tally tally = {.ctl = ctl};
	bool failed = false;
	int r = 0;

	if (argc < 2) {
		(void)fprintf(stderr, "flyrecctl: verify: a FILE or DIR is missing\n");
		return CTL_USAGE;
	}
	if (ctl->host) {
		(void)fprintf(stderr,
			      "flyrecctl: verify: reads local files; run it on %s: ssh %s "
			      "flyrecctl verify ...\n",
			      ctl->host, ctl->host);
		return CTL_USAGE;
	}
	if (ctl->json) {
		tally.files = json_object_new_array();
		if (!tally.files)
			r = -ENOMEM;
	}
	for (int i = 1; i < argc && r != -ENOMEM; i++) {
		r = verify_argument(&tally, argv[i]);
		failed |= r < 0;
	}
	if (r != -ENOMEM && tally.files) {
		r = print_json(tally.files);
		failed |= r < 0;
	}
	json_object_put(tally.files);
	if (r == -ENOMEM)
		(void)log_error_errno(r, "verify: %m");
	else if (tally.n_faulty)
		log_error("verify: %zu of %zu files %s", tally.n_faulty, tally.n_files,
			  tally.n_faulty == 1 ? "is faulty" : "are faulty");
	return failed || r < 0 || tally.n_faulty ? CTL_FAILED : CTL_DONE;
}
