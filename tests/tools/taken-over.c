/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A flyrecd that was taken over: preloaded into flyrecd by a drop-in of its unit
 *
 *	Environment=LD_PRELOAD=/.../taken-over.so
 *
 * this does within flyrecd, with all that flyrecd has and has not by then, what an attacker would
 *try, once, before the event loop begins. STATE/taken-over has a line for each: "allowed NAME" or
 *"refused NAME: why". flyrecd then goes on as if nothing were.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#define SYSTEMD "org.freedesktop.systemd1"
#define OUTPUT	"/var/lib/flyrec/taken-over"

int sd_event_loop(sd_event *event); /* ours, in place of libsystemd's */

static FILE *out;

/* @r: 0 or negative errno */
static void tell(const char *name, const char *detail, int r)
{
	if (r >= 0)
		(void)fprintf(out, "allowed %s%s\n", name, detail);
	else
		(void)fprintf(out, "refused %s%s: %s\n", name, detail, strerror(-r));
}

static void try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600), r = fd < 0 ? -errno : 0;
	char c;

	/* What is hidden is an empty file, or there is none */
	if (fd >= 0 && flags == O_RDONLY && read(fd, &c, 1) != 1)
		r = errno == EISDIR ? 0 : -ENODATA;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && flags & O_CREAT)
		(void)unlink(path);
	tell(flags == O_RDONLY ? "read " : "write ", path, r);
}

static void try_files(void)
{
	static const char *const reads[] = {
		"/etc/shadow",	    "/etc/gshadow",    "/etc/ssh/ssh_host_test_key",
		"/etc/test-secret", "/root/secret",    "/home/secret",
		"/srv/secret",	    "/proc/1/environ", "/proc/kcore",
		"/run/secret",
	};
	static const char *const writes[] = {
		"/run/x",     "/run/systemd/system/x.conf",
		"/dev/shm/x", "/etc/x",
		"/var/lib/x", "/tmp/x",
		"/usr/x",     "/etc/systemd/system/x.service",
	};
	static const char *const needed[] = {"/etc/group", "/proc/self/status"};

	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++)
		try_open(reads[i], O_RDONLY);
	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++)
		try_open(writes[i], O_WRONLY | O_CREAT);
	try_open("/proc/sys/kernel/core_pattern", O_WRONLY);
	try_open("/sys/kernel/tracing/tracing_on", O_WRONLY);
	try_open("/proc/sysrq-trigger", O_WRONLY);
	tell("mkdir /run/systemd/system/x.service.d", "",
	     mkdir("/run/systemd/system/x.service.d", 0755) < 0 ? -errno : 0);
	tell("symlink in the state directory", "",
	     symlink("/etc/shadow", "/var/lib/flyrec/link") < 0 ? -errno : 0);
	/* And what it is there for */
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		try_open(needed[i], O_RDONLY);
	try_open("/var/lib/flyrec/x", O_WRONLY | O_CREAT);
	try_open("/run/flyrec/x", O_WRONLY | O_CREAT);
}

/* --- other processes */

static void try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	tell("connect ", path,
	     fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0);
	if (fd >= 0)
		close(fd);
}

/* @address: NULL: the system bus */
static int open_bus(const char *address, sd_bus **ret)
{
	sd_bus *bus = NULL;
	int r;

	if (!address)
		return sd_bus_open_system(ret);
	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		*ret = bus;
	else
		sd_bus_unref(bus);
	return r;
}

static void try_systemd(const char *where, const char *address)
{
	sd_bus_error e = SD_BUS_ERROR_NULL;
	sd_bus *bus = NULL;
	int r = open_bus(address, &bus);

	if (r >= 0)
		r = sd_bus_call_method(bus, SYSTEMD, "/org/freedesktop/systemd1",
				       SYSTEMD ".Manager", "StartUnit", &e, NULL, "ss",
				       "taken.service", "replace");
	tell("StartUnit ", where, r);
	sd_bus_error_free(&e);
	if (bus)
		r = sd_bus_call_method(bus, SYSTEMD, "/org/freedesktop/systemd1",
				       SYSTEMD ".Manager", "StartTransientUnit", &e, NULL,
				       "ssa(sv)a(sa(sv))", "taken-transient.service", "replace", 1,
				       "ExecStart", "a(sasb)", 1, "/bin/true", 1, "/bin/true", 0,
				       0);
	tell("StartTransientUnit ", where, r);
	sd_bus_error_free(&e);
	sd_bus_close_unref(bus);
}

/* A process of root's that has no rights to speak of, as its pid is in this file */
static pid_t victim(void)
{
	FILE *f = fopen("/var/lib/flyrec/victim", "re");
	int pid = 0;

	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		(void)fclose(f);
	return pid;
}

static void try_processes(void)
{
	pid_t pid = victim();
	char path[64];

	tell("kill 1", "", kill(1, 0) < 0 ? -errno : 0);
	tell("kill root's", "", pid <= 0 ? -ESRCH : kill(pid, 0) < 0 ? -errno : 0);
	tell("ptrace root's", "",
	     pid <= 0				   ? -ESRCH
	     : ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 ? -errno
						   : 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	{
		int fd = open(path, O_RDWR | O_CLOEXEC);

		tell("memory of root's", "", fd < 0 ? -errno : 0);
		if (fd >= 0)
			close(fd);
	}
	try_connect("/run/root-only");
	try_connect("/run/systemd/private");
	try_systemd("over the bus", NULL);
	try_systemd("over systemd's socket", "unix:path=/run/systemd/private");
}

/* --- getting back what was given up, in a child, as it would be confusing if it worked */

static int as_root(void)
{
	(void)setfsuid(0);
	return setresuid(0, 0, 0) < 0 ? -errno : 0;
}

static int with_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct all[2] = {{.effective = ~0U, .permitted = ~0U},
						      {.effective = 0x1ff, .permitted = 0x1ff}};

	return syscall(SYS_capset, &header, all) < 0 ? -errno : 0;
}

static int as_group_0(void)
{
	return setresgid(0, 0, 0) < 0 ? -errno : 0;
}

static int run_program(void)
{
	(void)execl("/bin/true", "true", NULL);
	return -errno;
}

static int use_keys(void)
{
	return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) < 0 ? -errno
											   : 0;
}

static int of_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 ? -errno : 0;
}

static void try_in_child(const char *name, int (*what)(void))
{
	int status = 0;
	pid_t pid;

	(void)fflush(out);
	pid = fork();
	if (pid == 0)
		_exit(-what());
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		tell(name, "", -ECHILD);
	else
		tell(name, "", -WEXITSTATUS(status));
}

int sd_event_loop(sd_event *event)
{
	int (*real)(sd_event *) = (int (*)(sd_event *))dlsym(RTLD_NEXT, "sd_event_loop");

	out = fopen(OUTPUT ".new", "we");
	if (out) {
		try_files();
		try_processes();
		try_in_child("setresuid 0", as_root);
		try_in_child("setresgid 0", as_group_0);
		try_in_child("capset", with_caps);
		try_in_child("execve", run_program);
		try_in_child("keyctl", use_keys);
		try_in_child("inet socket", of_inet);
		(void)fclose(out);
		(void)rename(OUTPUT ".new", OUTPUT);
	}
	return real(event);
}
