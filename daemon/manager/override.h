/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CONFIG/sessions.d/NAME.conf.d/50-flyrecctl.conf: what was asked for at runtime and is to be kept.
 * It holds nothing else; removing it goes back to what people wrote. Main thread.
 */
#pragma once

#include "basic/fault.h"
#include "config/config.h"

#define OVERRIDE_FILE "50-flyrecctl.conf"

/**
 * override_events() - keep the list of events of @config
 * override_enabled() - keep Enabled=
 * What the file says about the other one stays. Nothing is written where the file as it is cannot
 * be read, or as it would be could not be read as what is meant. Return: 0 or negative errno with
 * @why.
 */
int override_events(const char *config_dir, const struct session_config *config, struct fault *why);
int override_enabled(const char *config_dir, const char *name, bool enabled, struct fault *why);
