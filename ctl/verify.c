/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "convert/convert.h"
#include "ctl/confine.h"
#include "ctl/output.h"
#include "ctl/verify.h"
#include "formats/arm-snapshot.h"

struct tally {
	const struct ctl *ctl;
	size_t n_files, n_faulty;
};

static int show(const struct ctl *ctl, const struct verify_report *report)
{
	if (ctl->json)
		return put_json(verify_report_json(report), "") == CTL_DONE ? 0 : -EIO;
	verify_report_print(report, stdout);
	return fflush(stdout) < 0 ? -errno : 0;
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

/* One file or snapshot, for the process that reads it */
struct item {
	const struct ctl *ctl;
	const char *path;
	int fd; /* of the file, or of the snapshot's directory */
	bool snapshot;
	const char *fault; /* that is all there is to say */
};

static int check_item(void *userdata)
{
	const struct item *item = userdata;
	struct verify_report report;
	int r = verify_report_init(&report, item->path);

	if (r < 0)
		return r;
	if (item->fault)
		verify_report_line(&report, item->fault);
	else
		r = item->snapshot ? verify_arm(item->fd, item->path, verify_report_found, &report,
						&report.version)
				   : verify_open(item->fd, &report);
	if (r >= 0)
		r = show(item->ctl, &report);
	if (r >= 0)
		r = !verify_report_ok(&report);
	verify_report_done(&report);
	return r;
}

/* The file is read by a process without rights, one for each file; it prints what it finds */
static int verify_item(struct tally *tally, struct item *item)
{
	int r = 0;

	item->ctl = tally->ctl;
	if (tally->ctl->json)
		r = fputs(tally->n_files > 0 ? "," : "{\"files\":[", stdout) < 0 ? -errno : 0;
	if (r >= 0 && !item->fault) {
		r = ctl_confined(item->path, item->snapshot ? item->path : NULL, check_item, item);
		if (r < 0)
			item->fault = "it could not be read to its end";
	}
	if (item->fault)
		r = check_item(item);
	tally->n_files++;
	tally->n_faulty += r != 0;
	return r < 0 ? r : 0;
}

/* @found: by walking a directory; a file may then be gone by now (rotation, retention) */
static int verify_path(struct tally *tally, const char *path, bool found)
{
	_cleanup_close_ int fd = io_open_at(AT_FDCWD, path, 0);
	struct item item = {.path = path, .fd = fd};
	struct fault why;

	if (fd == -ENOENT && found)
		return 0;
	if (fd < 0) {
		(void)fault_errno(&why, fd, "%s: cannot open", path);
		item.fault = why.text;
	}
	return verify_item(tally, &item);
}

/* @index: the path of a snapshot.ini */
static int verify_snapshot(struct tally *tally, const char *index, bool found)
{
	size_t n = strlen(index) - strlen(ARM_SNAPSHOT_INI);
	_cleanup_free_ char *dir = n ? strndup(index, n > 1 ? n - 1 : n) : strdup(".");
	_cleanup_close_ int fd = -EBADF;

	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && found)
		return 0;
	if (fd < 0)
		return log_error_errno(-errno, "%s: cannot open: %m", dir);
	return verify_item(tally, &(struct item){.path = dir, .fd = fd, .snapshot = true});
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
	if (r == 0 && tally->n_files == before) {
		log_error("%s: no *.dat file and no Arm snapshot in it: nothing was verified",
			  path);
		r = -ENOENT;
	}
	return r;
}

enum ctl_status verb_verify(struct ctl *ctl, int argc, char **argv)
{
	struct tally tally = {.ctl = ctl};
	bool failed = false;
	int r = 0;

	if (argc < 2)
		return ctl_complain(ctl, "a FILE or DIR is missing");
	if (ctl->host)
		return ctl_complain(ctl,
				    "reads local files; run it on %s: ssh %s flyrecctl verify ...",
				    ctl->host, ctl->host);
	for (int i = 1; i < argc && r != -ENOMEM; i++) {
		r = verify_argument(&tally, argv[i]);
		failed |= r < 0;
	}
	if (ctl->json)
		failed |= printf("%s]}\n", tally.n_files > 0 ? "" : "{\"files\":[") < 0 ||
			  fflush(stdout) != 0;
	if (r == -ENOMEM)
		(void)log_error_errno(r, "verify: %m");
	else if (tally.n_faulty)
		log_error("verify: %zu of %zu files %s", tally.n_faulty, tally.n_files,
			  tally.n_faulty == 1 ? "is faulty" : "are faulty");
	return failed || r < 0 || tally.n_faulty ? CTL_FAILED : CTL_DONE;
}
