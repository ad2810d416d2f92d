/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the line of Python that takes a thread the most CPU time, without those that it calls, and has callgrind count
 * the instructions of the processor for one: a trace function for PyEval_SetTrace() of CPython 3.11
 * (https://docs.python.org/3.11/c-api/init.html#profiling-and-tracing).  Python's headers need not be installed.
 *
 * The interpreter lets another thread run between two lines, but not while one calls C.
 */
#include <time.h>
#include <valgrind/callgrind.h>

typedef struct object PyObject;

PyObject *PyFrame_GetCode(PyObject *);
int PyFrame_GetLineNumber(PyObject *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);

long events;		/* of the trace, since begin() */
long chosen;		/* the event that ends what callgrind counts; 0 for none */
long longest;		/* nanoseconds between two events */
long longest_event;	/* the later one of them */
long line;		/* its number */
PyObject *code;

static long begun;
static long begun_line;
static PyObject *begun_code;

static long
cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (now.tv_sec * 1000000000L + now.tv_nsec);
}

void
begin(long choose)
{
	events = longest = longest_event = 0;
	chosen = choose;
	begun = cpu_time();
}

void
write_count(void)
{
	CALLGRIND_DUMP_STATS;
}

int
notice(PyObject *self, PyObject *frame, int what, PyObject *argument)
{
	long took = cpu_time() - begun;

	(void)self;
	(void)what;
	(void)argument;
	if (++events == chosen)
		CALLGRIND_STOP_INSTRUMENTATION;
	if (took > longest && begun_code != NULL) {
		longest = took;
		longest_event = events;
		line = begun_line;
		Py_IncRef(begun_code);
		Py_DecRef(code);
		code = begun_code;
	}
	Py_DecRef(begun_code);
	begun_code = PyFrame_GetCode(frame);
	begun_line = PyFrame_GetLineNumber(frame);
	if (events == chosen - 1)
		CALLGRIND_START_INSTRUMENTATION;
	begun = cpu_time();
	return (0);
}
