/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the lines of Python that a thread executes: a trace function for PyEval_SetTrace() of CPython 3.11
 * (https://docs.python.org/3.11/c-api/init.html#profiling-and-tracing).  Python's headers need not be installed.
 */
#include <stdbool.h>
#include <string.h>

typedef struct object PyObject;

PyObject *PyFrame_GetCode(PyObject *);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
int PyObject_SetAttrString(PyObject *, const char *, PyObject *);
const char *PyUnicode_AsUTF8(PyObject *);
PyObject *PyBool_FromLong(long);
void Py_DecRef(PyObject *);

enum { TRACE_CALL = 0, TRACE_LINE = 2 };

long lines;
const char *excluded;	/* a file whose lines are not counted */
int count(PyObject *, PyObject *, int, PyObject *);

static bool
is_excluded(PyObject *frame)
{
	PyObject *code = PyFrame_GetCode(frame);
	PyObject *file = PyObject_GetAttrString(code, "co_filename");
	bool found = file != NULL && strcmp(PyUnicode_AsUTF8(file), excluded) == 0;

	Py_DecRef(file);
	Py_DecRef(code);
	return (found);
}

int
count(PyObject *self, PyObject *frame, int what, PyObject *argument)
{
	PyObject *no;
	int failed = 0;

	(void)self;
	(void)argument;
	if (what == TRACE_LINE)
		lines++;
	else if (what == TRACE_CALL && is_excluded(frame)) {
		no = PyBool_FromLong(0);
		failed = PyObject_SetAttrString(frame, "f_trace_lines", no);
		Py_DecRef(no);
	}
	return (failed);
}
