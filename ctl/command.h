/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of flyrecctl's command line: a row in command.c has all that is known of one. Main
 * thread.
 */
#pragma once

#include "ctl/ctl.h"
#include "decode/event-filter.h"

/**
 * command_parse() - take options, as getopt_long(3) finds them
 * @to_verb: stop at the first word that is no option; else options may stand anywhere, and argv[0]
 * is the verb
 * Return: 0, -ENOMEM, or -EINVAL when there is no such option, which has been said.
 */
int command_parse(int argc, char **argv, bool to_verb, struct ctl *ctl);
void command_done(struct ctl *ctl);

/**
 * command_fit() - does the verb take all that were given? If not, that is said.
 */
bool command_fit(const struct ctl *ctl, const char *verb);

/**
 * command_format() - which of the verb's formats is --format=, and does it take all that were
 * given? If not, that is said.
 * @names: NULL-terminated
 * Return: index, or -EINVAL.
 */
int command_format(const struct ctl *ctl, const char *verb, const char *const *names);

/**
 * command_words() - options of the verb that were given, to give them again elsewhere; not where
 * its output goes
 * @words: gets them, a word each
 * Return: 0 or -ENOMEM.
 */
int command_words(const struct ctl *ctl, char ***words);

/**
 * command_filter() - all that was given of --event=, --pid=, --unit=, --container=, --cpu=,
 * --since= and --until=; says what is not understood
 */
bool command_filter(const struct ctl *ctl, struct event_filter *filter);

/**
 * command_help() - print those that all verbs have, and those of this one
 * @verb: or NULL
 * @formats: that it knows, NULL-terminated
 */
void command_help(const char *verb, const char *const *formats);
