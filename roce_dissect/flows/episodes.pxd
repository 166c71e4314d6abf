# Written by tools/make_pxd.py from roce_dissect.flows.episodes: change that, not this.
from roce_dissect.flows.ledger cimport Ledger
from roce_dissect.flows.states cimport *

cdef class Episodes(Ledger):
    cdef int order
    cdef int note_cause(self, Py_ssize_t stream, long long trigger, long long psn) except -1 nogil
    cdef int clear_cause(self, Py_ssize_t stream) except -1 nogil
    cdef int recheck_timeout(self, Py_ssize_t stream) except -1 nogil
    cdef int add_to_episode(self, Py_ssize_t stream, long long psn, long long stop, bint late, long long payload, long long sent_time, bint asks) except -1 nogil
    cdef bint goes_back(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef int open_episode(self, Py_ssize_t stream, long long psn, bint late, long long sent_time, bint asks) except -1 nogil
    cdef int note_progress(self, Py_ssize_t stream) except -1 nogil
    cdef int close_episode(self, Py_ssize_t stream, bint advances) except -1 nogil
    cdef int add_mark(self, Py_ssize_t stream, Py_ssize_t run, long long kind) except -1 nogil
    cdef int close_marks(self, Py_ssize_t stream, Py_ssize_t run, long long kind) except -1 nogil
