/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each event of ours begins with, in events that do not come from a kernel: the common fields
 * of include/linux/trace_events.h (struct trace_entry), and their lines in a format text.
 */
#pragma once

#include <stdint.h>

struct event_file_head {
	uint16_t type;
	uint8_t flags;
	uint8_t preempt_count;
	int32_t pid;
};

#define EVENT_FILE_HEAD_FORMAT                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
