from roce_dissect.flows.messages cimport Messages
from roce_dissect.flows.states cimport *
