from roce_dissect.flows.ledger cimport Ledger
from roce_dissect.flows.states cimport *
