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
#include "convert/arm/export-arm.h"
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
static enum ctl_status open_memory(const char *text, struct coresight_memory *ret)
{
	struct stat st;
	char *end;

	errno = 0;
	ret->address = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || errno || *end != '=' || !end[1]) {
		(void)fprintf(stderr, "flyrecctl: --memory=: ADDRESS=FILE is wanted: \"%s\"\n",
			      text);
		return CTL_USAGE;
	}
	ret->name = end + 1;
	ret->fd = io_open_at(AT_FDCWD, ret->name, 0);
	if (ret->fd < 0) {
		(void)log_error_errno(ret->fd, "%s: cannot open: %m", ret->name);
		return CTL_FAILED;
	}
	if (fstat(ret->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_p(&ret->fd);
		log_error("%s: is no regular file", ret->name);
		return CTL_FAILED;
	}
	return CTL_DONE;
}

static enum ctl_status read_memory(const struct ctl *ctl, struct memory *memory)
{
	enum ctl_status status;

	*memory = (struct memory){
		.items = calloc(strv_length(ctl->memory) + 1, sizeof(*memory->items)),
	};
	if (!memory->items) {
		(void)log_error_errno(-ENOMEM, "--memory=: %m");
		return CTL_FAILED;
	}
	STRV_FOREACH (m, ctl->memory) {
		status = open_memory(*m, &memory->items[memory->n]);
		if (status != CTL_DONE)
			return status;
		memory->n++;
	}
	return CTL_DONE;
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

static int fill(const struct ctl *ctl, const struct memory *memory, int dir_fd,
		const struct arm_dat *dat, struct fault *why)
{
	const char *sysroot = ctl->sysroot ? ctl->sysroot : "/";
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

static enum ctl_status save(const struct ctl *ctl, const char *dir, const struct arm_dat *dat)
{
	_cleanup_(memory_done) struct memory memory = {};
	enum ctl_status status;
	struct new_dir new;
	struct fault why = {};
	int r;

	status = read_memory(ctl, &memory);
	if (status != CTL_DONE)
		return status;
	r = new_dir_open(&new, AT_FDCWD, dir, 0700);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot create: %m", dir);
		return CTL_FAILED;
	}
	r = fill(ctl, &memory, new.fd, dat, &why);
	if (r >= 0) {
		r = new_dir_publish(&new);
		if (r < 0)
			(void)fault_errno(&why, r, "%s: cannot create", dir);
	}
	new_dir_done(&new);
	if (r < 0 && why.error)
		log_error("%s", why.text);
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

enum ctl_status arm_save(const struct ctl *ctl, const char *dir, const struct arm_dat *dat)
{
	enum ctl_status status;
	sigset_t set, old;

	/* Ctrl-C counts when the directory is whole, or gone */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	status = save(ctl, dir, dat);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return status;
}

static int open_dat(void *userdata)
{
	const struct trace_dat *dat = userdata;
	int fd = fcntl(dat->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? log_error_errno(-errno, "%s: cannot open: %m", dat->path) : fd;
}

enum ctl_status export_arm(const struct ctl *ctl, int argc, char **argv)
{
	struct arm_dat arm_dat;
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	struct fault why;

	if (argc > 2 || !ctl->output) {
		(void)fprintf(stderr, "flyrecctl: export: --format=arm-snapshot takes --output=DIR "
				      "and at most one FILE\n");
		return CTL_USAGE;
	}
	if (argc == 2 && trace_dat_open(argv[1], &dat, &why) < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	arm_dat = (struct arm_dat){.open = open_dat, .userdata = dat, .path = argv[argc - 1]};
	return arm_save(ctl, ctl->output, dat ? &arm_dat : NULL);
}
