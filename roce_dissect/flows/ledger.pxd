# Written by tools/make_pxd.py from roce_dissect.flows.ledger: change that, not this.
from roce_dissect.flows.states cimport *

cdef class Ledger:
    cdef int[::1] slots
    cdef const unsigned int[::1] classes
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
    cdef long long hole_time
    cdef long long slot_of(self, long long hosts, long long qp, long long source) except -1 nogil
    cdef Py_ssize_t find_stream(self, long long hosts, long long qp, long long source, bint enter) except -2 nogil
    cdef Py_ssize_t enter_stream(self, long long hosts, long long qp, long long source, Py_ssize_t slot, long long life) except -2 nogil
    cdef Py_ssize_t find_pair(self, long long hosts) except -1 nogil
    cdef int emit(self, long long kind, Py_ssize_t stream, long long psn, long long count, long long value) except -1 nogil
    cdef long long added_time(self, long long total, long long more) except -1 nogil
    cdef long long new_hole(self, Py_ssize_t stream, long long start, long long stop, long long link) except -1 nogil
    cdef bint fill_hole(self, Py_ssize_t stream, long long psn, long long stop) except -1 nogil
    cdef long long find_hole(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef int drop_hole(self, Py_ssize_t stream, long long before, long long hole) except -1 nogil
    cdef long long forget_holes(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef int open_hole(self, Py_ssize_t stream, long long start, long long stop) except -1 nogil
