/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecd --check-config: read the configuration as the daemon would, print what is wrong with it,
 * touch nothing. Of the machine it only looks at the programs of Uprobe= and Usdt=. Main thread.
 */
#pragma once

/**
 * check_config() - print "FILE:LINE: what is wrong" on stderr for each fault
 * @config_dir: as for config_load(); the vendor's files are checked with it
 * LINE is 0 where a file or directory cannot be read at all.
 * Return: exit status: 0 no fault, 1 faults or nothing could be read.
 */
int check_config(const char *config_dir);
