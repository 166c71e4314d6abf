# Written by tools/make_pxd.py from roce_dissect.flows.responder: change that, not this.
from roce_dissect.flows.messages cimport Messages
from roce_dissect.flows.states cimport *

cdef class Responder(Messages):
    cdef long long asked_frame
    cdef int transport
    cdef long long distance(self, long long psn, long long reference) noexcept nogil
    cdef long long respond(self, Py_ssize_t stream, long long psn, long long stop) except -1 nogil
    cdef long long respond_unreliable(self, Py_ssize_t stream, long long psn, bint starts) except -1 nogil
    cdef Py_ssize_t find_peer(self, Py_ssize_t stream, long long psn, long long before_first) except -1 nogil
    cdef int link(self, Py_ssize_t one, Py_ssize_t other, long long evidence) except -1 nogil
    cdef long long judge_response(self, Py_ssize_t stream, long long psn, int opcode, bint refuses, long long payload) except -1 nogil
    cdef int note_answer(self, Py_ssize_t stream, long long psn, int kind, int syndrome) except -1 nogil
    cdef int hear(self, Py_ssize_t stream, long long psn, int kind, int syndrome) except -1 nogil
    cdef int hear_sequence_nak(self, Py_ssize_t stream, Py_ssize_t peer, long long psn) except -1 nogil
    cdef int take_answer(self, Py_ssize_t stream, Py_ssize_t peer, long long psn, int kind, int syndrome) except -1 nogil
    cdef int take_back(self, Py_ssize_t stream, long long psn) except -1 nogil
    cdef int resume(self, Py_ssize_t stream, long long expected) except -1 nogil
