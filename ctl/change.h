/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verbs that change something. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

enum ctl_status verb_rotate(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_start(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_stop(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_pause(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_resume(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_event_enable(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_event_disable(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_filter(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_vacuum(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_reload(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_pin(const struct ctl *ctl, int argc, char **argv);
enum ctl_status verb_unpin(const struct ctl *ctl, int argc, char **argv);
