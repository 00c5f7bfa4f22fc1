/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/new-dir.h"
#include "basic/strv.h"
#include "convert/convert.h"
#include "formats/trace-dat-read.h"
#include "recorder/coresight.h"
#include "writer/copy.h"

struct memory {
	struct coresight_memory *items;
	size_t n;
};

static void memory_done(struct memory *memory)
{
	for (size_t i = 0; i < memory->n; i++)
		close_p(&memory->items[i].fd);
	free(memory->items);
}

/* ADDR=FILE */
static enum convert_status open_memory(const char *text, struct coresight_memory *ret)
{
	struct stat st;
	char *end;

	errno = 0;
	ret->address = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || errno || *end != '=' || !end[1]) {
		(void)fprintf(stderr, "flyrecctl: --memory=: ADDRESS=FILE is wanted: \"%s\"\n",
			      text);
		return CONVERT_USAGE;
	}
	ret->name = end + 1;
	ret->fd = io_open_at(AT_FDCWD, ret->name, 0);
	if (ret->fd < 0) {
		(void)log_error_errno(ret->fd, "%s: cannot open: %m", ret->name);
		return CONVERT_FAILED;
	}
	if (fstat(ret->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_p(&ret->fd);
		log_error("%s: is no regular file", ret->name);
		return CONVERT_FAILED;
	}
	return CONVERT_DONE;
}

static enum convert_status read_memory(const struct convert_options *options, struct memory *memory)
{
	enum convert_status status;

	*memory = (struct memory){
		.items = calloc(strv_length(options->memory) + 1, sizeof(*memory->items)),
	};
	if (!memory->items) {
		(void)log_error_errno(-ENOMEM, "--memory=: %m");
		return CONVERT_FAILED;
	}
	STRV_FOREACH (m, options->memory) {
		status = open_memory(*m, &memory->items[memory->n]);
		if (status != CONVERT_DONE)
			return status;
		memory->n++;
	}
	return CONVERT_DONE;
}

static int copy_dat(int dir_fd, const struct arm_dat *dat, struct fault *why)
{
	_cleanup_close_ int dat_fd = dat->open(dat->userdata);
	_cleanup_close_ int fd =
		openat(dir_fd, "trace.dat", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	int r;

	if (dat_fd < 0)
		return dat_fd; /* has been logged */
	if (fd < 0)
		return fault_errno(why, -errno, "trace.dat: cannot create");
	r = copy_trace(dat_fd, dat->path, fd, NULL, why);
	if (r >= 0 && fsync(fd) < 0)
		r = fault_errno(why, -errno, "trace.dat: cannot write");
	return r;
}

static int fill(const struct convert_options *options, const struct memory *memory, int dir_fd,
		const struct arm_dat *dat, struct fault *why)
{
	const char *sysroot = options->sysroot ? options->sysroot : "/";
	_cleanup_close_ int root_fd = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(strv_freep) char **notes = NULL;
	int r;

	if (root_fd < 0)
		return fault_errno(why, -errno, "%s: cannot open", sysroot);
	r = coresight_collect(
		&(struct coresight_request){
			.root_fd = root_fd,
			.dir_fd = dir_fd,
			.ftrace = dat ? "trace.dat" : NULL,
			.description = "flyrec " PACKAGE_VERSION,
			.memory = memory->items,
			.n_memory = memory->n,
		},
		&notes, why);
	/* a failure tells them all itself */
	for (char **note = notes; r >= 0 && note && *note; note++)
		log_notice("%s", *note);
	if (r >= 0 && dat)
		r = copy_dat(dir_fd, dat, why);
	return r;
}

static enum convert_status save(const struct convert_options *options, const char *dir,
				const struct arm_dat *dat)
{
	_cleanup_(memory_done) struct memory memory = {};
	enum convert_status status;
	struct new_dir new;
	struct fault why = {};
	int r;

	status = read_memory(options, &memory);
	if (status != CONVERT_DONE)
		return status;
	r = new_dir_open(&new, AT_FDCWD, dir, 0700);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot create: %m", dir);
		return CONVERT_FAILED;
	}
	r = fill(options, &memory, new.fd, dat, &why);
	if (r >= 0) {
		r = new_dir_publish(&new);
		if (r < 0)
			(void)fault_errno(&why, r, "%s: cannot create", dir);
	}
	new_dir_done(&new);
	if (r < 0 && why.error)
		log_error("%s", why.text);
	return r < 0 ? CONVERT_FAILED : CONVERT_DONE;
}

enum convert_status arm_save(const struct convert_options *options, const char *dir,
			     const struct arm_dat *dat)
{
	enum convert_status status;
	sigset_t set, old;

	/* Ctrl-C counts when the directory is whole, or gone */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	status = save(options, dir, dat);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return status;
}

static int open_dat(void *userdata)
{
	const struct trace_dat *dat = userdata;
	int fd = fcntl(dat->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? log_error_errno(-errno, "%s: cannot open: %m", dat->path) : fd;
}

enum convert_status export_arm(const struct convert_options *options, const char *dir,
			       const char *file)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	struct arm_dat arm_dat;
	struct fault why;

	if (file && trace_dat_open(file, &dat, &why) < 0) {
		log_error("%s", why.text);
		return CONVERT_FAILED;
	}
	arm_dat = (struct arm_dat){.open = open_dat, .userdata = dat, .path = file};
	return arm_save(options, dir, dat ? &arm_dat : NULL);
}
