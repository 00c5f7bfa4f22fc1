/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the path of a control group says: systemd's unit, by systemd's rules (cg_path_get_unit(),
 * cg_path_get_user_unit()), and the container, by the names that docker, podman, containerd, CRI-O
 * and Kubernetes give to its group. Plain memory, any thread.
 */
#pragma once

#include "basic/macro.h"

/* malloc'ed; NULL: there is none */
struct cgroup_names {
	char *unit;	 /* of a user's manager, if it is in one; with systemd's escapes */
	char *manager;	 /* "user@1000.service": that manager */
	char *slice;	 /* the innermost that the unit is in */
	char *container; /* 64 hexadecimal digits, of the innermost one */
};

/**
 * cgroup_names_parse() - @path: as in /proc/PID/cgroup
 * Return: 0 or -ENOMEM.
 */
int cgroup_names_parse(const char *path, struct cgroup_names *ret);
void cgroup_names_done(struct cgroup_names *names);
