# The ledger's fields and methods, for the tracker that is built on it: keep in step with ledger.py.
from roce_dissect.flows.states cimport *

cdef class Ledger:
    cdef int[::1] slots
    cdef const unsigned short[::1] classes
    cdef long long[:, ::1] streams
    cdef long long[:, ::1] pairs
    cdef long long[:, ::1] holes
    cdef long long[:, ::1] recent
    cdef long long[:, ::1] events
    cdef long long[::1] counts
    cdef unsigned long long seed
    cdef long long frame
    cdef long long time
    cdef long long missing
    cdef long long extended

    cdef long long slot_of(self, long long hosts, long long qp, long long source) except -1 nogil
    cdef Py_ssize_t find_stream(self, long long hosts, long long qp, long long source, bint enter) except -2 nogil
    cdef Py_ssize_t enter_stream(self, long long hosts, long long qp, long long source, Py_ssize_t slot, long long life) except -2 nogil
    cdef Py_ssize_t new_life(self, Py_ssize_t old) except -2 nogil
    cdef Py_ssize_t find_pair(self, long long hosts) except -1 nogil
    cdef int emit(self, long long kind, Py_ssize_t stream, long long psn, long long count, long long value) except -1 nogil
    cdef int add_to_run(self, Py_ssize_t stream, long long psn, bint late) except -1 nogil
    cdef int note_progress(self, Py_ssize_t stream) except -1 nogil
    cdef int close_run(self, Py_ssize_t stream) except -1 nogil
    cdef int add_mark(self, Py_ssize_t stream, Py_ssize_t run, long long kind) except -1 nogil
    cdef int close_marks(self, Py_ssize_t stream, Py_ssize_t run, long long kind) except -1 nogil
    cdef long long new_hole(self, Py_ssize_t stream, long long start, long long stop, long long link) except -1 nogil
    cdef bint fill_hole(self, Py_ssize_t stream, long long psn, long long stop) except -1 nogil
    cdef int drop_hole(self, Py_ssize_t stream, long long before, long long hole) except -1 nogil
    cdef long long forget_holes(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef int open_hole(self, Py_ssize_t stream, long long start, long long stop) except -1 nogil
