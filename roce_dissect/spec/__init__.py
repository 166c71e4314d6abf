"""Protocol tables, one home for each fact: opcodes, headers, AETH codes, CM messages, numbers of ports and types."""
