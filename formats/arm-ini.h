/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text files of an Arm debug and trace snapshot:
 *
 *	[section]                  a name of letters, digits and "_"
 *	key=value                  ; or # begin a comment, also behind a value
 *	TRCIDR0(0x078)=0x28000EA1
 *
 * Not the syntax of basic/ini.h: a comment may stand behind a value, nothing continues a line, and
 * CRLF is a fault, as it makes readers lose what follows. Pure functions, any thread.
 */
#pragma once

#include "basic/macro.h"

#define ARM_INI_SIZE_MAX  (1 * MIB) /* a file beyond that is refused */
#define ARM_INI_LINES_MAX 20000U

struct arm_ini_key {
	unsigned line; /* from 1 */
	const char *name, *value;
};

struct arm_ini_section {
	unsigned line; /* of its header */
	const char *name;
	struct arm_ini_key *keys;
	size_t n_keys;
};

struct arm_ini {
	struct arm_ini_section *sections; /* in their order */
	size_t n_sections;
	char *text; /* what names and values point into */
};

/* @line 0: of the file as such */
typedef void (*arm_ini_fault_t)(void *userdata, unsigned line, const char *text);

/**
 * arm_ini_read() - a text as sections with their keys
 * @on_fault: called for each line that is not of this syntax; reading goes on behind it
 * Return: 0, also with faults, or -ENOMEM. arm_ini_done() frees.
 */
int arm_ini_read(const char *data, size_t size, arm_ini_fault_t on_fault, void *userdata,
		 struct arm_ini *ret);

void arm_ini_done(struct arm_ini *ini);

/* The first section of that name, NULL: none */
const struct arm_ini_section *arm_ini_section(const struct arm_ini *ini, const char *name);

/* The first key of that name, NULL: none, also of a section that is NULL */
const struct arm_ini_key *arm_ini_key(const struct arm_ini_section *section, const char *name);
