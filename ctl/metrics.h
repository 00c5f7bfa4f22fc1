/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The numbers of status and stats as OpenMetrics text 1.0
 * (https://prometheus.io/docs/specs/om/open_metrics_spec/). Pure function.
 */
#pragma once

#include "ctl/view.h"

/**
 * metrics_write() - everything, up to "# EOF"
 * @f: errors show in ferror()
 */
void metrics_write(FILE *f, const struct view_status *status, const struct view_stats_list *stats);
