/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verbs that show: status, list, stats, metrics; and what the shell's completion asks. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_status(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_list(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_stats(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_metrics(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_boot_parameters(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_complete(const struct ctl *ctl, int argc, char **argv);
