/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <tracefs.h>

#include "basic/confine.h"
#include "basic/log.h"
#include "basic/macro.h"
#include "basic/strv.h"
#include "config/config.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/privileges.h"
#include "daemon/plumbing/journal.h"
#include "writer/metadata.h"

#define USER  "flyrecd"
#define GROUP "flyrec"

#define CAP(name) (UINT64_C(1) << (name))
/* What the unit or a drop-in of it grants for a use of it; the rest, if it is given, goes */
#define CAPS_KEPT                                                                             \
	(CAP(CAP_SYSLOG) | CAP(CAP_SYS_RESOURCE) | CAP(CAP_SYS_RAWIO) | CAP(CAP_SYS_PTRACE) | \
	 CAP(CAP_SYS_NICE) | CAP(CAP_DAC_READ_SEARCH))

struct caps {
	uint64_t effective, permitted;
};

static int get_caps(struct caps *ret)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret = (struct caps){
		.effective = data[0].effective | (uint64_t)data[1].effective << 32,
		.permitted = data[0].permitted | (uint64_t)data[1].permitted << 32,
	};
	return 0;
}

/* None is inheritable, and by that none ambient */
static int set_caps(const struct caps *caps)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)caps->effective, .permitted = (uint32_t)caps->permitted},
		{.effective = (uint32_t)(caps->effective >> 32),
		 .permitted = (uint32_t)(caps->permitted >> 32)},
	};

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Files belong to group flyrec where there is one */
static void join_group(void)
{
	const struct group *group = getgrnam(GROUP);

	if (group && getegid() != group->gr_gid &&
	    setresgid(group->gr_gid, group->gr_gid, group->gr_gid) < 0)
		log_warning_errno(-errno, "cannot make files for group " GROUP ": %m, ignoring");
}

static int become(uid_t uid)
{
	struct caps caps = {}, kept;
	int r = get_caps(&caps);

	if (r < 0)
		return r;
	if (getgroups(0, NULL) > 0 && setgroups(0, NULL) < 0)
		return -errno;
	/* That root goes takes the effective ones, and without this the permitted ones, too */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	r = set_caps(&caps);
	if (r < 0)
		return r;
	(void)setfsuid(0);
	if (setfsuid((uid_t)-1) != 0)
		return -EPERM;
	kept.permitted = kept.effective = caps.permitted & CAPS_KEPT;
	r = set_caps(&kept);
	if (r < 0)
		return r;
	/* The change of IDs has switched core dumps off; nobody else is this user */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int leave_root(void)
{
	const struct passwd *user = getpwnam(USER);

	join_group();
	if (!user) {
		log_info("there is no user " USER ": going on as root");
		return 0;
	}
	return become(user->pw_uid);
}

/* --- files */

#define ALL (CONFINE_READ | CONFINE_WRITE | CONFINE_MAKE)

/*
 * What is above @dir: a file system may be mounted at @dir later, or another one than now, and the
 * kernel then goes by the rules for what is above alone. @buffer: PATH_MAX bytes
 */
static const char *above(const char *dir, char *buffer)
{
	struct stat st;

	if (stat(dir, &st) >= 0) {
		(void)snprintf(buffer, PATH_MAX, "%s/..", dir);
		return buffer;
	}
	(void)snprintf(buffer, PATH_MAX, "%s", dir);
	return dirname(buffer);
}

/* Directories of programs that are probed, as an upgrade makes a new file; NULL-terminated */
static int list_programs(char *const *probes, char ***list)
{
	STRV_FOREACH (p, probes) {
		_cleanup_free_ char *path = NULL;
		const char *place = strchr(*p, ' ');
		int r;

		if (!place || place[1] != '/')
			continue;
		path = strndup(place + 1, strcspn(place + 1, ": "));
		if (!path)
			return -ENOMEM;
		r = strv_append(list, dirname(path));
		if (r < 0)
			return r;
	}
	return 0;
}

static bool reads_journal(const struct daemon_config *config)
{
	for (size_t i = 0; i < config->n_sessions; i++)
		if (config->sessions[i]->snapshot.journal ||
		    config->sessions[i]->snapshot.on_journal)
			return true;
	return false;
}

static int confine_all(const struct confine_path *paths, size_t n, char *const *programs)
{
	_cleanup_free_ struct confine_path *all = calloc(n + strv_length(programs), sizeof(*all));

	if (!all)
		return -ENOMEM;
	memcpy(all, paths, n * sizeof(*all));
	STRV_FOREACH (p, programs)
		all[n++] = (struct confine_path){*p, CONFINE_READ};
	return confine_files(all, n);
}

static int confine(const struct manager_options *o, const struct daemon_config *config)
{
	_cleanup_(strv_freep) char **programs = NULL;
	char parent[PATH_MAX], instances[PATH_MAX], dynamic[PATH_MAX], cmdlines[PATH_MAX];
	const char *tracefs = tracefs_tracing_dir(), *sysroot = secure_getenv("FLYREC_SYSROOT");
	const bool journal = reads_journal(config);
	const struct confine_path paths[] =
	{ {above(o->state_dir, parent), ALL},
	  {o->state_dir, ALL},
	  {o->runtime_dir, ALL},
	  {o->config_dir, ALL}, /* flyrecctl --persist */
	  {VENDOR_DIR, CONFINE_READ},
	  {instances, ALL},
	  {dynamic, CONFINE_READ | CONFINE_WRITE},
	  {cmdlines, CONFINE_READ | CONFINE_WRITE},
	  {tracefs, CONFINE_READ},
	  /* Events of the machine's and its processes, and what the header of a file tells */
	  {"/proc", CONFINE_READ},
	  {"/proc/pressure", CONFINE_READ | CONFINE_WRITE},
	  {"/sys", CONFINE_READ},
	  {symbols_path(), CONFINE_READ},
	  /* Libraries that the C library loads for names of groups, time zones */
	  {"/usr", CONFINE_READ},
	  {"/lib", CONFINE_READ},
	  {"/lib64", CONFINE_READ},
	  /* One by one, as there is much in /etc that root alone may read */
	  {"/etc/group", CONFINE_READ},
	  {"/etc/nsswitch.conf", CONFINE_READ},
	  {"/etc/ld.so.cache", CONFINE_READ},
	  {"/etc/localtime", CONFINE_READ},
	  {"/etc/machine-id", CONFINE_READ},
	  /* A session may be a link to it, which switches a vendor's off */
	  {"/dev/null", CONFINE_READ | CONFINE_WRITE},
#if defined(__aarch64__) || defined(__arm__)
	  /* CoreSight's sinks, which may come later than we do; the unit grants no other device */
	  {"/dev", CONFINE_READ},
#endif
	  {sysroot ? sysroot : "", CONFINE_READ},
	  {journal ? JOURNAL_RUNTIME : "", CONFINE_READ},
	  {journal ? JOURNAL_PERSISTENT : "", CONFINE_READ},
	  {journal && journal_dir() ? journal_dir() : "", CONFINE_READ},
	};
	int r = 0;

	for (size_t i = 0; i < config->n_sessions && r >= 0; i++) {
		r = list_programs(config->sessions[i]->trace.uprobes, &programs);
		if (r >= 0)
			r = list_programs(config->sessions[i]->trace.usdts, &programs);
	}
	if (r < 0)
		return r;
	(void)snprintf(instances, sizeof(instances), "%s/instances", tracefs ? tracefs : "");
	(void)snprintf(dynamic, sizeof(dynamic), "%s/dynamic_events", tracefs ? tracefs : "");
	(void)snprintf(cmdlines, sizeof(cmdlines), "%s/saved_cmdlines_size",
		       tracefs ? tracefs : "");
	/* Where it is not made by a unit: a rule needs what it is for */
	(void)mkdir(o->runtime_dir, 0755);
	r = confine_no_new_privs();
	if (r >= 0)
		r = confine_all(paths, ARRAY_SIZE(paths), programs);
	if (r == CONFINE_E_UNSUPPORTED)
		log_debug("this kernel has no Landlock: files are confined by the unit alone");
	return r < 0 ? r : 0;
}

int privileges_drop(const struct manager_options *options, const struct daemon_config *config)
{
	int r = geteuid() == 0 ? leave_root() : 0;

	if (r < 0)
		return log_error_errno(r, "cannot become user " USER ": %m");
	r = confine(options, config);
	return r < 0 ? log_error_errno(r, "cannot confine the access to files: %m") : 0;
}
