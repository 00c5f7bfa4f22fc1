/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of flyrec-fleet have in common: options, and the configuration that they name.
 * Main thread.
 */
#pragma once

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

/**
 * fleet_load() - read the configuration; faults are lines on stderr
 * Return: as fleet_config_load().
 */
int fleet_load(struct fleet *fleet);

void fleet_done(struct fleet *fleet);
