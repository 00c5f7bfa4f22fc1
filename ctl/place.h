/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The times of several files as merge would have them (writer/merge-axis.h): to the nanosecond,
 * where the date of a file by itself has microseconds. Main thread.
 */
#pragma once

#include "analysis/hosts.h"

/**
 * place_sources() - set by how much the times of each are moved, and how wrong they may be
 * Return: 0, or negative errno with @why, and nothing is set: they cannot be compared, or cannot be
 * read.
 */
int place_sources(struct source *sources, size_t n, struct fault *why);

/**
 * place_hosts() - place_sources() of @n_files that are of several hosts
 * Where they cannot be compared, each is shown by what it has. Return: 0, or -ENOMEM with @why.
 */
int place_hosts(struct host_sources *hosts, size_t n_files, struct fault *why);
