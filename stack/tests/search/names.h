/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before the files of api/ that are part of simsearch: their functions
 * get names of their own, because simsearch itself calls the C library.
 */
#ifndef TESTS_SEARCH_NAMES_H
#define TESTS_SEARCH_NAMES_H

#define	close		model_close
#define	close_range	model_close_range
#define	closefrom	model_closefrom
#define	dup		model_dup
#define	dup2		model_dup2
#define	dup3		model_dup3
#define	fcntl		model_fcntl
#define	fcntl64		model_fcntl64
#define	ioctl		model_ioctl
#define	sockatmark	model_sockatmark
#define	open		model_open
#define	eventfd		model_eventfd
#define	memfd_create	model_memfd_create

#endif /* TESTS_SEARCH_NAMES_H */
