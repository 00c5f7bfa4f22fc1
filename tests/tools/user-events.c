/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * user-events N - an application that traces itself by user_events: one event whose fields the
 * kernel knows, "flyrec_plain", and one that describes itself (EventHeader), "flyrec_header_L4K1".
 * Both are there until it ends. For each line of its input it prints whether the two are enabled,
 * and writes N of each that is.
 *
 * Documentation/trace/user_events.rst, include/uapi/linux/user_events.h of Linux 6.4, which the
 * headers of Debian 12 are older than.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/tools/common.h"

#define DATA_FILE "/sys/kernel/tracing/user_events_data"

struct user_reg {
	uint32_t size;
	uint8_t enable_bit, enable_size;
	uint16_t flags;
	uint64_t enable_addr, name_args;
	uint32_t write_index;
} __attribute__((packed));

#define REGISTER _IOWR('*', 0, struct user_reg *)

/* Native byte order: flags 2 (extensions) | 4 (little-endian), then version to level */
static const char header[] = "\x07\0\0\0\0\0\0\4"
			     /* of the payload: a name, and a name and an encoding of each field */
			     "\x17\0\1\0"
			     "Reply\0"
			     "n\0\4"	     /* value32 */
			     "minus\0\x82\2" /* value8, signed */
			     "text\0\7" /* zstring_char8 */;

static uint32_t enabled[2];

static uint32_t add(int fd, uint32_t *enable, const char *what)
{
	struct user_reg reg = {
		.size = sizeof(reg),
		.enable_size = sizeof(*enable),
		.enable_addr = (uintptr_t)enable,
		.name_args = (uintptr_t)what,
	};

	if (ioctl(fd, REGISTER, &reg) < 0)
		err(1, "%s", what);
	return reg.write_index;
}

static void put(int fd, uint32_t index, const void *head, size_t head_size, const void *rest,
		size_t rest_size)
{
	struct iovec parts[] = {
		{.iov_base = &index, .iov_len = sizeof(index)},
		{.iov_base = (void *)(uintptr_t)head, .iov_len = head_size},
		{.iov_base = (void *)(uintptr_t)rest, .iov_len = rest_size},
	};

	if (writev(fd, parts, ARRAY_SIZE(parts)) < 0)
		err(1, "write");
}

int main(int argc, char **argv)
{
	const uint32_t n = argc == 2 ? (uint32_t)number_parse("N", argv[1]) : 0;
	uint32_t plain, described, made = 0;
	int fd = open(DATA_FILE, O_RDWR | O_CLOEXEC);
	char line[16];

	if (n == 0)
		errx(2, "user-events N");
	if (fd < 0)
		err(1, DATA_FILE);
	plain = add(fd, &enabled[0], "flyrec_plain u32 count;char[8] text");
	described =
		add(fd, &enabled[1],
		    "flyrec_header_L4K1 u8 eventheader_flags;u8 version;u16 id;u16 tag;u8 opcode;"
		    "u8 level");
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		const bool first = __atomic_load_n(&enabled[0], __ATOMIC_RELAXED) & 1;
		const bool second = __atomic_load_n(&enabled[1], __ATOMIC_RELAXED) & 1;

		for (uint32_t i = 0; i < n; i++, made++) {
			char payload[4 + 1 + 8] = {[4] = -2};

			memcpy(payload, &made, sizeof(made));
			(void)snprintf(payload + 5, 8, "t%u", made);
			if (first)
				put(fd, plain, &made, sizeof(made), payload + 5, 8);
			if (second)
				put(fd, described, header, sizeof(header) - 1, payload,
				    5 + strlen(payload + 5) + 1);
		}
		printf("%d %d\n", first, second);
		fflush(stdout);
	}
	close(fd);
	return 0;
}
