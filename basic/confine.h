/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a process gives up before it reads what others wrote: files by Landlock, and what running
 * another program could give. Nothing of it can be undone, and threads inherit it: call these
 * before there are any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* At their end sanitizers look into /proc and stop threads */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED 0
#endif

enum confine_rights {
	CONFINE_READ = 1,  /* files and lists of directories */
	CONFINE_WRITE = 2, /* files that are there */
	CONFINE_MAKE = 4,  /* make, rename, remove files, directories and sockets */
};

/* @path and all below it, on other file systems, too, but what is mounted on @path itself later */
struct confine_path {
	const char *path;
	unsigned rights; /* of enum confine_rights */
};

enum confine_result {
	CONFINE_E_UNSUPPORTED = 1, /* the kernel has no Landlock, or that of before Linux 5.19 */
};

/**
 * confine_no_new_privs() - programs run from now on get no rights by set-user-ID bits or
 * capabilities of files; confine_files() requires it
 * Return: 0 or negative errno.
 */
int confine_no_new_privs(void);

/**
 * confine_files() - open from now on only what @paths allow, and run no program
 * @paths: those that do not exist are ignored, symbolic links are followed
 * @n: 0: no file can be opened at all
 *
 * Descriptors that are open keep their rights. What Landlock does not control: O_PATH, stat(2),
 * connecting to sockets, chmod(2), and, before Linux 6.2, truncate(2).
 *
 * Return: 0, CONFINE_E_UNSUPPORTED, or negative errno.
 */
int confine_files(const struct confine_path *paths, size_t n);

/**
 * confine_calls() - make from now on only system calls that do something with descriptors, memory
 * and time that the process has; others fail with EPERM
 * @files: also open, rename and remove files, as far as confine_files() allows
 * Kernels without seccomp: nothing. Return: 0 or negative errno.
 */
int confine_calls(bool files);

/**
 * confine_user() - become nobody, if we are root
 * Return: 0 or negative errno.
 */
int confine_user(void);

/**
 * confine_child() - all of these for a process that only computes, and ends with its parent
 * @parent: that had forked it, by getpid()
 * Sanitizers need more than that leaves: with them it keeps its rights.
 * Return: 0, -ECANCELED if the parent is gone, or another negative errno.
 */
int confine_child(pid_t parent);
