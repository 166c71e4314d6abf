# Written by tools/make_pxd.py from roce_dissect.flows.messages: change that, not this.
from roce_dissect.flows.episodes cimport Episodes
from roce_dissect.flows.states cimport *

cdef class Messages(Episodes):
    cdef long long[:, ::1] messages
    cdef long long[:, ::1] ended
    cdef long long[:, ::1] latency
    cdef long long asked_time
    cdef long long message
    cdef long long enter(self, Py_ssize_t stream, long long before, long long psn, long long stop, int kind, long long payload) except -1 nogil
    cdef int leave(self, Py_ssize_t stream, long long before, long long message) except -1 nogil
    cdef int end_oldest(self, Py_ssize_t stream, long long status) except -1 nogil
    cdef int count_latency(self, long long message, long long latency) except -1 nogil
    cdef long long follow(self, Py_ssize_t stream, long long psn, long long stop, int kind, long long slack, long long payload) except -1 nogil
    cdef long long end_refused(self, Py_ssize_t stream, long long message) except -1 nogil
    cdef long long lengthen(self, long long message, long long stop, int kind, long long payload) except -1 nogil
    cdef long long settle_unreliable(self, Py_ssize_t stream, int kind) except -1 nogil
    cdef long long repeat(self, Py_ssize_t stream, long long psn, long long stop, int kind, long long slack, bint late, long long payload) except -1 nogil
    cdef bint goes_on(self, long long message, long long psn) except -1 nogil
    cdef int join(self, Py_ssize_t stream, long long message, long long rest) except -1 nogil
    cdef long long acknowledge(self, Py_ssize_t stream, long long acked) except -1 nogil
    cdef long long answer(self, Py_ssize_t stream, long long psn, int kind, long long acked) except -1 nogil
    cdef long long meet_rnr(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef long long message_at(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef long long refuse(self, Py_ssize_t stream, long long psn, int syndrome) except -1 nogil
    cdef int end_all(self, Py_ssize_t stream) except -1 nogil
