/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"

int main(void)
{
	log_open(LOG_INFO);
	return 0;
}
