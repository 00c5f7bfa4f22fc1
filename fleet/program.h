/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of flyrec-fleet have in common: options, the configuration that they name, and
 * the event loop of those that stay. Main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "fleet/config.h"

struct fleet {
	const char *name;	 /* of the program */
	const char *config_path; /* --config= */
	const char *runtime_dir; /* --runtime-dir=, of flyrecd */
	struct fleet_config *config;
};

/**
 * fleet_options() - what stands before the first argument that is none
 * @usage: printed for --help
 * Return: the index of that argument; 0: --help or --version has been answered; -EINVAL: the wrong
 * ones, as said.
 */
int fleet_options(struct fleet *fleet, int argc, char *argv[], const char *usage);

#define FLEET_OPTIONS_HELP                                                       \
	"  --config=FILE        Configuration (default " FLEET_CONFIG_FILE ")\n" \
	"  --runtime-dir=DIR    Of flyrecd (default /run/flyrec)\n"              \
	"  -h --help            This text\n"                                     \
	"  --version            The version\n"

/**
 * fleet_load() - read the configuration; faults are lines on stderr
 * Return: as fleet_config_load().
 */
int fleet_load(struct fleet *fleet);

/**
 * fleet_program_path() - where flyrec-fleet-NAME is; it is told of the options in its environment
 * Return: malloc'ed; NULL: no memory.
 */
char *fleet_program_path(const struct fleet *fleet, const char *name);

/**
 * fleet_program() - the command line of a program that has no verbs
 * Return: 1: go on; 0: it has been answered; -EINVAL.
 */
int fleet_program(struct fleet *fleet, int argc, char *argv[], const char *what);

/**
 * fleet_run_begin() - the configuration, which names a broker, and a loop that SIGTERM ends
 * Return: 0 or negative errno, as said.
 */
int fleet_run_begin(struct fleet *fleet, sd_event **ret);

/**
 * fleet_run() - tell the service manager that it is ready, and stay until the end
 * Return: 0 or negative errno, as said.
 */
int fleet_run(sd_event *event);

void fleet_done(struct fleet *fleet);
