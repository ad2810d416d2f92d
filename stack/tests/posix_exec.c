/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of programs that children execute, by each call that does it. */
#include <spawn.h>
#include <sys/syscall.h>

#include "posix_child.h"

#define	NO_DESCRIPTOR	"-1"

/* Answers on its standard input, unless a descriptor is open that must not be. */
static int
executed(const char *closed)
{
	FAILS(fcntl(atoi(closed), F_GETFD), EBADF);
	answer_one(STDIN_FILENO);
	return (0);
}

static void
become(int fd, const char *closed)
{
	OK(dup2(fd, STDIN_FILENO));
	FAILS(execl("/nonexistent", "posix_exec", NULL), ENOENT);
	OK(execl("/proc/self/exe", "posix_exec", "executed", closed, NULL));
}

static void
become_program(int fd)
{
	become(fd, NO_DESCRIPTOR);
}

TEST(a_program_that_a_child_executes_has_its_sockets)
{
	expect_answer_of(become_program);
}

static void
become_program_without(int fd)
{
	char number[12];

	OK(fcntl(fd, F_SETFD, FD_CLOEXEC));
	snprintf(number, sizeof(number), "%d", fd);
	become(fd, number);
}

TEST(an_executed_program_has_no_socket_with_cloexec)
{
	expect_answer_of(become_program_without);
}

TEST(a_vforked_child_passes_a_socket_to_its_program)
{
	int s[2];
	pid_t pid;

	tcp_pair(s);
	pid = vfork();
	if (pid == 0) {
		if (dup2(s[1], STDIN_FILENO) == STDIN_FILENO)
			execl("/proc/self/exe", "posix_exec", "executed",
			    NO_DESCRIPTOR, NULL);
		_exit(1);
	}
	OK(close(s[1]));
	CHECK(pid > 0);
	expect_answer(s[0], pid);
}

/* The program of these tests as a command of a shell. */
static void
command_of(char *command, size_t size, const char *redirection)
{
	char path[256];
	const ssize_t n = OK(readlink("/proc/self/exe", path, sizeof(path)));

	CHECK((int)size > snprintf(command, size, "%.*s executed %s %s", (int)n,
	    path, NO_DESCRIPTOR, redirection));
}

/* posix_spawn() with the socket as standard input. */
static pid_t
spawned(int fd, const char *closed)
{
	char *const argv[] = { (char *)"posix_exec", (char *)"executed",
	    (char *)(uintptr_t)closed, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	CHECK_EQ(posix_spawn(&pid, "/nonexistent", &actions, NULL, argv,
	    environ), ENOENT);
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv,
	    environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	return (pid);
}

TEST(a_spawned_program_gets_the_socket_of_a_file_action)
{
	char number[12];
	int s[2];
	pid_t pid;

	tcp_pair(s);
	for (int fd = 0; fd < 2; fd++)
		OK(fcntl(s[fd], F_SETFD, FD_CLOEXEC));
	snprintf(number, sizeof(number), "%d", s[1]);
	pid = spawned(s[1], number);
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

TEST(the_end_of_a_connection_is_seen_while_a_spawned_program_runs)
{
	int s[2], t[2];
	pid_t pid;

	tcp_pair(s);
	tcp_pair(t);
	OK(fcntl(s[1], F_SETFD, FD_CLOEXEC));
	OK(fcntl(t[0], F_SETFD, FD_CLOEXEC));
	pid = spawned(t[1], NO_DESCRIPTOR);
	OK(close(t[1]));
	OK(close(s[1]));
	expect_end(s[0]);
	expect_answer(t[0], pid);
	OK(close(s[0]));
}

TEST(a_spawned_program_without_file_actions_keeps_its_sockets)
{
	char number[12];
	char *const argv[] = { (char *)"posix_exec", (char *)"answer", number,
	    NULL };
	int s[2];
	pid_t pid;

	tcp_pair(s);
	OK(fcntl(s[0], F_SETFD, FD_CLOEXEC));
	snprintf(number, sizeof(number), "%d", s[1]);
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv,
	    environ), 0);
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

static void *
run_system(void *command)
{
	CHECK_EQ(system(command), 0);
	return (NULL);
}

TEST(a_command_of_system_has_the_sockets)
{
	char command[400], redirection[20];
	pthread_t t;
	int s[2];

	tcp_pair(s);
	snprintf(redirection, sizeof(redirection), "<&%d", s[1]);
	command_of(command, sizeof(command), redirection);
	CHECK_EQ(pthread_create(&t, NULL, run_system, command), 0);
	send_byte(s[0]);
	expect_byte(s[0]);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(WEXITSTATUS(system("exit 7")), 7);
	CHECK(system(NULL) != 0);
	close_pair(s);
}

TEST(a_command_of_popen_has_the_sockets)
{
	char command[420], redirection[40], word[8] = "";
	int s[2];
	FILE *f;

	tcp_pair(s);
	snprintf(redirection, sizeof(redirection), "<&%d && echo done", s[1]);
	command_of(command, sizeof(command), redirection);
	f = popen(command, "r");
	CHECK(f != NULL);
	send_byte(s[0]);
	expect_byte(s[0]);
	CHECK_EQ(fscanf(f, "%7s", word), 1);
	CHECK(strcmp(word, "done") == 0);
	CHECK_EQ(pclose(f), 0);
	f = popen("read x && exit $x", "we");
	CHECK(f != NULL);
	fprintf(f, "5\n");
	CHECK_EQ(WEXITSTATUS(pclose(f)), 5);
	close_pair(s);
}

/* The answer comes from the program, not from the kernel's socket. */
TEST(a_system_call_executes_a_program)
{
	char number[12];
	char *const argv[] = { (char *)"posix_exec", (char *)"answer", number,
	    NULL };
	int s[2];
	pid_t pid;

	tcp_pair(s);
	snprintf(number, sizeof(number), "%d", s[1]);
	pid = OK(fork());
	if (pid == 0) {
		syscall(SYS_execve, "/proc/self/exe", argv, environ);
		_exit(1);
	}
	OK(close(s[1]));
	expect_answer(s[0], pid);
}

/* A program with a socket of the parent makes another one. */
static int
connect_to_port(const char *port)
{
	struct sockaddr_in sin = loopback((uint16_t)atoi(port));
	int fd = OK(socket(AF_INET, SOCK_STREAM, 0));

	OK(connect(fd, (struct sockaddr *)&sin, sizeof(sin)));
	answer_one(fd);
	return (0);
}

TEST(a_program_that_got_no_socket_connects)
{
	char port[12];
	char *const argv[] = { (char *)"posix_exec", (char *)"connect", port,
	    NULL };
	int l = listener(), fd;
	pid_t pid;

	OK(fcntl(l, F_SETFD, FD_CLOEXEC));
	snprintf(port, sizeof(port), "%d", ntohs(own_address(l).sin_port));
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv,
	    environ), 0);
	fd = OK(accept(l, NULL, NULL));
	expect_answer(fd, pid);
	OK(close(l));
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "answer") == 0) {
		answer_one(atoi(argv[2]));
		return (0);
	}
	if (argc == 3 && strcmp(argv[1], "connect") == 0)
		return (connect_to_port(argv[2]));
	if (argc == 3 && strcmp(argv[1], "executed") == 0)
		return (executed(argv[2]));
	return (posix_main(argc, argv));
}
