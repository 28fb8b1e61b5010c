/* An extension of Python that does not look whether a key was there. build: gcc -g -O0 -shared -fPIC {python}; run: python3 -c 'import sys; sys.path.insert(0, "{folder}"); import {module} as m; print(m.price({"tea": 3}, "tea")); print(m.price({"tea": 3}, "milk"))'; class: null-pointer */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject *found(PyObject *prices, PyObject *name)
{
    return PyDict_GetItem(prices, name); /* ROOT */
}
static PyObject *price(PyObject *self, PyObject *arguments)
{
    PyObject *prices, *name;
    if (!PyArg_ParseTuple(arguments, "OO", &prices, &name))
        return NULL;
    PyObject *value = found(prices, name);
    Py_INCREF(value);
    return value;
}
static PyMethodDef methods[] = {{"price", price, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "py_extension", NULL, -1, methods, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_py_extension(void)
{
    return PyModule_Create(&module);
}
