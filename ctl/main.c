/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/macro.h"

int main(void)
{
	return 2;
}
