/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A finding in words. Any thread.
 */
#pragma once

#include "analysis/findings.h"
#include "analysis/sources.h"

/**
 * finding_text() - one sentence, without control characters
 * Return: malloc'ed, NULL without memory.
 */
char *finding_text(const struct sources_facts *facts, const struct finding *finding);

/**
 * finding_command() - that of flyrecctl which shows more of it
 * @words: the sources as they were given, NULL-terminated
 * Return: likewise.
 */
char *finding_command(const struct sources_facts *facts, const struct finding *finding,
		      char *const *words);
