/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>

#include <tracefs.h>

#include "basic/io.h"
#include "basic/owner.h"
#include "recorder/instance.h"
#include "recorder/kernel-text.h"
#include "recorder/tracedir.h"
#include "recorder/tracefs.h"

#define LOCKDOWN_FILE "/sys/kernel/security/lockdown"
#define POSSIBLE_CPUS "/sys/devices/system/cpu/possible"
#define KPTR_FILE     "/proc/sys/kernel/kptr_restrict"

bool tracefs_locked_down(const char *text)
{
	return strstr(text, "[confidentiality]") != NULL;
}

bool kptr_restricted(void)
{
	_cleanup_free_ char *text = NULL;

	return io_read_file_at(AT_FDCWD, KPTR_FILE, &text, NULL) >= 0 && atoi(text) >= 2;
}

static bool lockdown_active(void)
{
	_cleanup_free_ char *text = NULL;

	return io_read_file_at(AT_FDCWD, LOCKDOWN_FILE, &text, NULL) >= 0 &&
	       tracefs_locked_down(text);
}

static int refused(const char *dir, const char *file, int error, struct fault *why)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s%s", dir, file);
	if (error != -ENOENT && error != -EPERM && error != -EACCES)
		return fault_errno(why, error, "cannot use tracefs: %s", path);
	if (lockdown_active())
		return fault_set(why, -EPERM,
				 "cannot trace: the kernel is locked down (" LOCKDOWN_FILE
				 " says confidentiality), which closes %s",
				 path);
	if (error == -ENOENT)
		return fault_set(
			why, error,
			"cannot trace: %s does not exist: this kernel's tracefs has no such file",
			path);
	return fault_errno(
		why, error,
		"cannot trace: no permission for %s as user %u (it takes root, or the group that "
		"tracefs is mounted with)",
		path, (unsigned)owner_uid());
}

/* libtracefs remembers where tracefs was, even if it has been unmounted since. */
static int find_mount(const char **ret_path, struct fault *why)
{
	const char *path = tracefs_tracing_dir();
	struct statfs fs;

	if (path && statfs(path, &fs) >= 0 && fs.f_type == TRACEFS_MAGIC) {
		*ret_path = path;
		return 0;
	}
	errno = 0;
	if (tracefs_tracing_dir_is_mounted(true, ret_path) >= 0)
		return 0;
	return fault_errno(why, errno > 0 ? -errno : -ENOENT,
			   "cannot trace: no tracefs is mounted, and mounting it at "
			   "/sys/kernel/tracing was refused");
}

int tracefs_usable(struct fault *why)
{
	static const struct {
		const char *file;
		int mode;
	} needed[] = {
		{"/instances", R_OK | W_OK | X_OK},
		{"/events", R_OK | X_OK},
	};
	_cleanup_free_ char *clock = NULL;
	struct tracedir dir = {.fd = -EBADF};
	const char *path;
	int r;

	r = find_mount(&path, why);
	if (r < 0)
		return r;
	r = tracedir_open(&dir, path);
	if (r < 0)
		return refused(path, "", r, why);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(needed); i++)
		if (faccessat(dir.fd, needed[i].file + 1, needed[i].mode, AT_EACCESS) < 0)
			r = refused(path, needed[i].file, -errno, why);
	/* Under lockdown the files are there, but opening one is refused. */
	if (r >= 0) {
		r = io_read_file_at(dir.fd, "trace_clock", &clock, NULL);
		if (r < 0)
			r = refused(path, "/trace_clock", r, why);
	}
	tracedir_done(&dir);
	return r;
}

int possible_cpus(unsigned *ret, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = io_read_file_at(AT_FDCWD, POSSIBLE_CPUS, &text, NULL);
	if (r >= 0)
		r = kernel_text_possible_cpus(text, ret);
	return r < 0 ? fault_errno(why, r, "cannot tell the number of CPUs: " POSSIBLE_CPUS) : 0;
}
