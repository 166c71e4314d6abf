from roce_dissect.flows.responder cimport Responder
from roce_dissect.flows.states cimport *
