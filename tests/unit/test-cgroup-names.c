/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Paths of control groups, as they are on real machines, and others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "decode/cgroup-names.h"

#define ID    "3f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8"
#define ID2   "aaaa2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6ffff"
#define POD   "pod0f7a1c9e_2b4d_4c6e_8f00_112233445566"
#define U1000 "/user.slice/user-1000.slice/user@1000.service"

static const struct row {
	const char *path, *unit, *manager, *slice, *container;
} rows[] = {
	/* systemd, of the machine */
	{"/", NULL, NULL, NULL, NULL},
	{"/init.scope", "init.scope", NULL, NULL, NULL},
	{"/system.slice/cron.service", "cron.service", NULL, "system.slice", NULL},
	{"/system.slice/ssh.service", "ssh.service", NULL, "system.slice", NULL},
	{"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", NULL,
	 "system-getty.slice", NULL},
	{"/system.slice/system-postgresql.slice/postgresql@15-main.service",
	 "postgresql@15-main.service", NULL, "system-postgresql.slice", NULL},
	{"/system.slice/system-systemd\\x2dfsck.slice/systemd-fsck@dev-disk-by\\x2duuid-A\\x2dB.service",
	 "systemd-fsck@dev-disk-by\\x2duuid-A\\x2dB.service", NULL, "system-systemd\\x2dfsck.slice",
	 NULL},
	{"/system.slice/dev-hugepages.mount", "dev-hugepages.mount", NULL, "system.slice", NULL},
	{"/system.slice/dbus.socket", "dbus.socket", NULL, "system.slice", NULL},
	{"/system.slice/systemd-udevd.service/udev", "systemd-udevd.service", NULL, "system.slice",
	 NULL},
	{"/system.slice/run-r0123456789abcdef.scope", "run-r0123456789abcdef.scope", NULL,
	 "system.slice", NULL},
	{"/a.slice/a-b.slice/a-b-c.slice/x.service/sub/y.service", "x.service", NULL, "a-b-c.slice",
	 NULL},
	/* what the kernel has for itself is escaped */
	{"/system.slice/_cgroup.service", "cgroup.service", NULL, "system.slice", NULL},
	{"/system.slice/__odd.service", "_odd.service", NULL, "system.slice", NULL},
	/* sessions and users' managers */
	{"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", NULL, "user-1000.slice",
	 NULL},
	{"/user.slice/user-0.slice/session-c2.scope", "session-c2.scope", NULL, "user-0.slice",
	 NULL},
	{U1000 "/init.scope", "user@1000.service", "user@1000.service", "user-1000.slice", NULL},
	{U1000, "user@1000.service", "user@1000.service", "user-1000.slice", NULL},
	{U1000 "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-5a.scope", "vte-spawn-5a.scope",
	 "user@1000.service", "app-org.gnome.Terminal.slice", NULL},
	{U1000 "/app.slice/app-gnome-firefox\\x2desr-4711.scope",
	 "app-gnome-firefox\\x2desr-4711.scope", "user@1000.service", "app.slice", NULL},
	{U1000 "/session.slice/org.gnome.Shell@wayland.service", "org.gnome.Shell@wayland.service",
	 "user@1000.service", "session.slice", NULL},
	{U1000 "/app.slice/dbus.service", "dbus.service", "user@1000.service", "app.slice", NULL},
	{U1000 "/pulseaudio.service", "pulseaudio.service", "user@1000.service", "user-1000.slice",
	 NULL},
	{U1000 "/delegated/deep/x.service", "user@1000.service", "user@1000.service",
	 "user-1000.slice", NULL},
	/* docker, by its own driver and by systemd's */
	{"/docker/" ID, NULL, NULL, NULL, ID},
	{"/docker/" ID "/init.scope", "init.scope", NULL, NULL, ID},
	{"/system.slice/docker-" ID ".scope", "docker-" ID ".scope", NULL, "system.slice", ID},
	{"/system.slice/docker.service", "docker.service", NULL, "system.slice", NULL},
	{"/docker/" ID "/docker/" ID2, NULL, NULL, NULL, ID2},
	{"/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-" POD
	 ".slice/cri-containerd-" ID2 ".scope",
	 "cri-containerd-" ID2 ".scope", NULL, "kubelet-kubepods-" POD ".slice", ID2},
	{U1000 "/user.slice/docker-" ID ".scope", "docker-" ID ".scope", "user@1000.service",
	 "user.slice", ID},
	/* podman: as root and as a user, in a pod, a unit of its own, and who watches over it */
	{"/machine.slice/libpod-" ID ".scope", "libpod-" ID ".scope", NULL, "machine.slice", ID},
	{"/machine.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope", NULL,
	 "machine.slice", ID},
	{"/machine.slice/libpod-" ID ".scope/container/system.slice/nginx.service",
	 "libpod-" ID ".scope", NULL, "machine.slice", ID},
	{"/machine.slice/libpod-conmon-" ID ".scope", "libpod-conmon-" ID ".scope", NULL,
	 "machine.slice", NULL},
	{"/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope/container",
	 "libpod-" ID ".scope", NULL, "machine-libpod_pod_" ID2 ".slice", ID},
	{U1000 "/user.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope",
	 "user@1000.service", "user.slice", ID},
	{"/system.slice/web.service/libpod-payload-" ID, "web.service", NULL, "system.slice", ID},
	{"/system.slice/web.service/supervisor", "web.service", NULL, "system.slice", NULL},
	{"/libpod_parent/libpod-" ID, NULL, NULL, NULL, ID},
	{"/libpod_parent/conmon", NULL, NULL, NULL, NULL},
	/* containerd and nerdctl */
	{"/system.slice/containerd.service", "containerd.service", NULL, "system.slice", NULL},
	{"/default/" ID, NULL, NULL, NULL, ID},
	{"/system.slice/nerdctl-" ID ".scope", "nerdctl-" ID ".scope", NULL, "system.slice", ID},
	/* Kubernetes by containerd and CRI-O, with both drivers, of version 1 and 2 */
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" POD
	 ".slice/cri-containerd-" ID ".scope",
	 "cri-containerd-" ID ".scope", NULL, "kubepods-burstable-" POD ".slice", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope", "crio-" ID ".scope", NULL,
	 "kubepods-" POD ".slice", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/crio-" ID ".scope/container", "crio-" ID ".scope",
	 NULL, "kubepods-" POD ".slice", ID},
	{"/kubepods.slice/kubepods-" POD ".slice/crio-conmon-" ID ".scope",
	 "crio-conmon-" ID ".scope", NULL, "kubepods-" POD ".slice", NULL},
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" POD ".slice/docker-" ID
	 ".scope",
	 "docker-" ID ".scope", NULL, "kubepods-besteffort-" POD ".slice", ID},
	{"/kubepods/burstable/pod0f7a1c9e-2b4d-4c6e-8f00-112233445566/" ID, NULL, NULL, NULL, ID},
	{"/kubepods/pod0f7a1c9e-2b4d-4c6e-8f00-112233445566/" ID "/sub", NULL, NULL, NULL, ID},
	{"/system.slice/containerd.service/kubepods-burstable-" POD ".slice:cri-containerd:" ID,
	 "containerd.service", NULL, "system.slice", ID},
	{"/kubepods-burstable-" POD ".slice:cri-containerd:" ID, NULL, NULL, NULL, ID},
	/* a systemd in a container, whose hierarchy begins anywhere */
	{"/lxc.payload.web/system.slice/nginx.service", "nginx.service", NULL, "system.slice",
	 NULL},
	{"/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service",
	 "systemd-nspawn@web.service", NULL, "machine.slice", NULL},
	{"/machine.slice/machine-web.scope/payload", "machine-web.scope", NULL, "machine.slice",
	 NULL},
	{"/../../system.slice/x.service", "x.service", NULL, "system.slice", NULL},
	/* no units: templates, wrong characters, no name, not these kinds */
	{"/system.slice/getty@.service", NULL, NULL, "system.slice", NULL},
	{"/system.slice/@tty1.service", NULL, NULL, "system.slice", NULL},
	{"/system.slice/.service", NULL, NULL, "system.slice", NULL},
	{"/system.slice/a b.service", NULL, NULL, "system.slice", NULL},
	{"/system.slice/x.target", NULL, NULL, "system.slice", NULL},
	{"/.slice/x.service", "x.service", NULL, NULL, NULL},
	{"/user.slice", NULL, NULL, "user.slice", NULL},
	{"", NULL, NULL, NULL, NULL},
	{"////", NULL, NULL, NULL, NULL},
	{"x", NULL, NULL, NULL, NULL},
	{"relative/x.service", "x.service", NULL, NULL, NULL},
	{"/\xff\xfe/\x01", NULL, NULL, NULL, NULL},
	{"/_/__", NULL, NULL, NULL, NULL},
	/* no ids: too short, too long, capitals, another letter before it */
	{"/docker/3f1a2b3c4d5e", NULL, NULL, NULL, NULL},
	{"/docker/0" ID, NULL, NULL, NULL, NULL},
	{"/docker/3F1A2B3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F708192A3B4C5D6E7F8", NULL, NULL,
	 NULL, NULL},
	{"/docker/x" ID, NULL, NULL, NULL, NULL},
	{"/pod_" ID, NULL, NULL, NULL, NULL},
};

static void assert_name(const struct row *row, const char *what, const char *is, const char *want)
{
	if (!text_equal(is, want))
		fail_msg("%s: %s is %s, not %s", row->path, what, is ? is : "none",
			 want ? want : "none");
}

static void test_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cgroup_names names;

		assert_int_equal(cgroup_names_parse(rows[i].path, &names), 0);
		assert_name(&rows[i], "unit", names.unit, rows[i].unit);
		assert_name(&rows[i], "manager", names.manager, rows[i].manager);
		assert_name(&rows[i], "slice", names.slice, rows[i].slice);
		assert_name(&rows[i], "container", names.container, rows[i].container);
		cgroup_names_done(&names);
	}
}

static void test_long(void **state)
{
	char path[1000] = "/", *end = path + 1;
	struct cgroup_names names;

	/* 247 and ".service" are 255, the most that a unit's name may have */
	memset(end, 'a', 247);
	(void)strcpy(end + 247, ".service");
	assert_int_equal(cgroup_names_parse(path, &names), 0);
	assert_string_equal(names.unit, path + 1);
	cgroup_names_done(&names);
	memset(end, 'a', 248);
	(void)strcpy(end + 248, ".service");
	assert_int_equal(cgroup_names_parse(path, &names), 0);
	assert_null(names.unit);
	cgroup_names_done(&names);
}

/* Each cut and changed path: no crash, no reading beyond it */
static void test_garbage(void **state)
{
	unsigned seed = 1;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t size = 0; size <= strlen(rows[i].path); size++) {
			_cleanup_free_ char *path = strndup(rows[i].path, size);
			struct cgroup_names names;

			assert_int_equal(cgroup_names_parse(path, &names), 0);
			cgroup_names_done(&names);
			if (size == 0)
				continue;
			path[(size_t)rand_r(&seed) % size] = (char)(rand_r(&seed) % 255 + 1);
			assert_int_equal(cgroup_names_parse(path, &names), 0);
			cgroup_names_done(&names);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
