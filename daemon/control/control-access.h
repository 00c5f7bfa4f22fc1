/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may do what over the control socket: rights by the credentials that the kernel gives for a
 * peer, never by what it says itself. Pure functions but for access_read_peer(). Main thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "basic/macro.h"

#define ACCESS_GROUPS_MAX 256

enum access_right {
	ACCESS_NONE,   /* say hello: so that a refusal has an answer to be in */
	ACCESS_QUERY,  /* root, group flyrec, AdminGroup=: look, take copies out */
	ACCESS_CHANGE, /* root, AdminGroup=: change what is traced, delete */
};

/* What the kernel says of a peer */
struct access_peer {
	uid_t uid;
	pid_t pid;
	gid_t groups[ACCESS_GROUPS_MAX]; /* the primary one too */
	size_t n_groups;
};

/* The groups that matter; -1: there is none */
struct access_groups {
	gid_t flyrec;
	gid_t admin;
	char admin_name[64]; /* as it was looked up */
};

/**
 * access_read_peer() - credentials of a connected socket: SO_PEERCRED, SO_PEERGROUPS
 * They are those of the moment when the peer connected. Return: 0 or negative errno.
 */
int access_read_peer(int fd, struct access_peer *ret);

/**
 * access_find_groups() - group numbers of "flyrec" and AdminGroup=
 * @groups: what was found before: those stay that can no longer be looked up, as /etc/group is
 *          another file by now, and Landlock lets flyrecd open only the one that it knows
 * May ask name services: at start and reload only.
 * Return: 0, or -EACCES: for that reason AdminGroup= is not known, which takes a restart.
 */
int access_find_groups(const char *admin_group, struct access_groups *groups);

/**
 * access_needed() - the right that a method call needs; what is unknown needs the most
 * @interface: NULL or "": as if unknown
 */
enum access_right access_needed(const char *interface, const char *member);

bool access_allowed(const struct access_peer *peer, const struct access_groups *groups,
		    enum access_right right);

/* For the refusal: who may */
const char *access_who(enum access_right right);
