/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of flyrecctl's command line. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

/* Options that not every verb takes */
enum verb_option {
	TAKES_PERSIST = 1, /* --persist, --runtime */
	TAKES_OUTPUT = 2,
	TAKES_VACUUM = 4, /* --max-use=, --older-than= */
	TAKES_RANGE = 8,  /* --last=, --reason=, --pin */
	TAKES_SINCE = 16, /* --since=, --until= */
	TAKES_FORMAT = 32,
	TAKES_FILTER = 64,   /* --event=, --cpu=, --pid= */
	TAKES_TEXT_IN = 128, /* --clk=, --strict */
	TAKES_TARMAC = 256,
	TAKES_SYSROOT = 1024,	/* --sysroot=, --memory= */
	TAKES_CORESIGHT = 2048, /* --coresight */
	TAKES_MAX_FRAMES = 4096,
	TAKES_ENDIAN = 8192,
	TAKES_FOLLOW = 16384, /* --follow, --lines= */
	TAKES_TOGETHER = 32768,
	TAKES_RAW = 65536,
	TAKES_TIME = 131072,
};

struct command {
	struct ctl ctl;
	bool help, version;
	unsigned used;	       /* enum verb_option, or-ed */
	const char *names[32]; /* of the options, as they were given first, by the bit in used */
};

/**
 * command_parse() - take options, as getopt_long(3) finds them
 * @to_verb: stop at the first word that is no option, else options may stand anywhere and argv[0]
 * is the verb Return: 0, -ENOMEM, or -EINVAL when there is no such option, which has been said.
 */
int command_parse(int argc, char **argv, bool to_verb, struct command *command);
