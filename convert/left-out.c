/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In the place of the formats that ./configure --disable-FORMAT has left out
 */
#include <errno.h>

#include "basic/log.h"
#include "convert/convert.h"

#define LEFT_OUT "this flyrecctl was built without "

#if !WITH_GDB
enum convert_status export_gdb_tfile(const struct export *export)
{
	log_error(LEFT_OUT "gdb");
	return CONVERT_FAILED;
}

int import_gdb_tfile(struct import *import, struct fault *why)
{
	return fault_set(why, -EOPNOTSUPP, LEFT_OUT "gdb");
}
#endif

#if !WITH_QEMU4V
enum convert_status export_qemu4v(const struct export *export)
{
	log_error(LEFT_OUT "qemu4v");
	return CONVERT_FAILED;
}

int import_qemu4v(struct import *import, struct fault *why)
{
	return fault_set(why, -EOPNOTSUPP, LEFT_OUT "qemu4v");
}
#endif

#if !WITH_ARM
enum convert_status arm_save(const struct convert_options *options, const char *dir,
			     const struct arm_dat *dat)
{
	log_error(LEFT_OUT "arm");
	return CONVERT_FAILED;
}

enum convert_status export_arm(const struct convert_options *options, const char *dir,
			       const char *file)
{
	return arm_save(options, dir, NULL);
}

int verify_arm(int dir_fd, const char *path, void (*on_fault)(void *userdata, const char *line),
	       void *userdata, unsigned *ret_version)
{
	struct fault why;

	*ret_version = 0;
	(void)fault_set(&why, -EOPNOTSUPP, "%s: " LEFT_OUT "arm", path);
	on_fault(userdata, why.text);
	return 0;
}
#endif
