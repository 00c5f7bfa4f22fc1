/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtraceevent's plugins. They are found and opened once, before flyrecctl gives up the right to
 * open files; each handle then gets them without a file. What is loaded is the process's, as shared
 * objects are. Main thread.
 */
#pragma once

#include <stdbool.h>

struct tep_event;
struct tep_handle;

/**
 * plugins_open() - find them and keep them loaded; later calls do nothing
 * Return: are any installed? Without them some kinds of event are printed as their formats say.
 */
bool plugins_open(void);

/**
 * plugins_add() - register what they print in a handle; plugins_remove(): before it is freed
 * Return: are there any?
 */
bool plugins_add(struct tep_handle *tep);
void plugins_remove(struct tep_handle *tep);

/**
 * plugins_is() - is an event printed by this plugin of libtraceevent's own; any thread
 */
bool plugins_is(const struct tep_event *event, const char *plugin);
