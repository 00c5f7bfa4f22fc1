/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/owner.h"
#include "daemon/plumbing/state-root.h"

#define LOCK_FILE      ".lock" /* no session is called so: names begin with a letter, digit, _ or - */
#define MOUNTED_FILE   "state-mounted"
#define NOTES_SIZE_MAX (4 * KIB)

struct state_root {
	const char *dir, *runtime_dir, *boot_id;
	int fd, lock_fd; /* the second is of a file in it that holds its lock */
	bool mounted;	 /* it is a file system of its own */
	bool is_new;
	unsigned n_users;
};

/* In RUNTIME/state-mounted is the boot in which we let go of a state directory that is a file
 * system of its own: a next process might find only what lies below it */
static int open_runtime_dir(const struct state_root *root)
{
	return open(root->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void note_mount(const struct state_root *root)
{
	_cleanup_close_ int fd = open_runtime_dir(root);
	int r = fd < 0 ? -errno
		       : io_replace_file_at(fd, MOUNTED_FILE, root->boot_id, strlen(root->boot_id),
					    0644);

	if (r < 0)
		log_warning_errno(r, "cannot write %s/" MOUNTED_FILE ": %m, ignoring",
				  root->runtime_dir);
}

void state_root_forget_mount(const struct state_root *root)
{
	_cleanup_close_ int fd = open_runtime_dir(root);

	if (fd >= 0)
		(void)unlinkat(fd, MOUNTED_FILE, 0);
}

static bool was_mounted(const struct state_root *root)
{
	_cleanup_close_ int fd = open_runtime_dir(root);
	_cleanup_free_ char *text = NULL;

	return fd >= 0 &&
	       io_read_stored_file_at(fd, MOUNTED_FILE, NOTES_SIZE_MAX, &text, NULL) >= 0 &&
	       strcmp(text, root->boot_id) == 0;
}

int state_root_new(const char *dir, const char *runtime_dir, const char *boot_id,
		   struct state_root **ret)
{
	struct state_root *root = calloc(1, sizeof(*root));

	if (!root)
		return -ENOMEM;
	*root = (struct state_root){
		.dir = dir,
		.runtime_dir = runtime_dir,
		.boot_id = boot_id,
		.fd = -EBADF,
		.lock_fd = -EBADF,
	};
	root->mounted = was_mounted(root);
	*ret = root;
	return 0;
}

static void close_dir(struct state_root *root)
{
	close_p(&root->fd);
	close_p(&root->lock_fd);
	root->fd = root->lock_fd = -EBADF;
}

void state_root_free(struct state_root *root)
{
	if (root)
		close_dir(root);
	free(root);
}

int state_root_fd(const struct state_root *root)
{
	return root->fd;
}

void state_root_ref(struct state_root *root)
{
	root->n_users++;
}

void state_root_unref(struct state_root *root)
{
	root->n_users--;
}

void state_root_leave(struct state_root *root)
{
	if (root->n_users > 0)
		return;
	if (root->mounted && root->fd >= 0)
		note_mount(root);
	close_dir(root);
}

bool state_root_is_new(struct state_root *root)
{
	bool is_new = root->is_new;

	root->is_new = false;
	return is_new;
}

void state_root_accept(struct state_root *root)
{
	root->mounted = false;
}

int state_root_check_mount(int fd, const char *path, bool *mounted, struct fault *why)
{
	struct stat st, above;
	bool is;

	if (fstat(fd, &st) < 0 || fstatat(fd, "..", &above, 0) < 0)
		return fault_errno(why, -errno, "cannot stat %s", path);
	is = above.st_dev != st.st_dev;
	if (*mounted && !is)
		return fault_set(why, -ESTALE, "%s is no longer mounted", path);
	*mounted = is;
	return 0;
}

static int open_dir(struct state_root *root, int *ret_fd, int *ret_lock, struct fault *why)
{
	const char *dir = root->dir;
	_cleanup_close_ int fd = -EBADF, lock = -EBADF;
	struct stat st;
	int r;

	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return fault_errno(why, -errno, "cannot make state directory %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open state directory %s", dir);
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "cannot stat state directory %s", dir);
	if (st.st_uid != owner_uid())
		return fault_set(why, -EPERM, "state directory %s belongs to user %u, not to us",
				 dir, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_set(why, -EPERM,
				 "state directory %s can be written by others (mode %04o)", dir,
				 (unsigned)st.st_mode & 07777);
	r = state_root_check_mount(fd, dir, &root->mounted, why);
	if (r < 0)
		return r;
	/* Who can read it can lock it: nobody else, also where an earlier flyrecd let the group */
	lock = openat(fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0 || fstat(lock, &st) < 0 ||
	    ((st.st_mode & 07777) != 0600 && fchmod(lock, 0600) < 0))
		return fault_errno(why, -errno, "cannot write to state directory %s", dir);
	/* Held until the process ends, whatever way it does, or lets go of the directory */
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fault_set(why, -EBUSY, "another flyrecd uses state directory %s",
					   dir)
			       : fault_errno(why, -errno, "cannot lock state directory %s", dir);
	*ret_fd = TAKE_FD(fd);
	*ret_lock = TAKE_FD(lock);
	return 0;
}

int state_root_find(struct state_root *root, struct fault *why)
{
	struct stat now, ours;
	int fd = -EBADF, lock = -EBADF, r;

	if (root->fd >= 0 && stat(root->dir, &now) >= 0 && fstat(root->fd, &ours) >= 0 &&
	    now.st_dev == ours.st_dev && now.st_ino == ours.st_ino)
		return 0;
	r = open_dir(root, &fd, &lock, why);
	if (r < 0)
		return r;
	close_dir(root);
	root->fd = fd;
	root->lock_fd = lock;
	root->is_new = true;
	state_root_forget_mount(root);
	return 0;
}
