"""The modules of HTA's `hta.common`, under their own names: traces, symbol tables, filters, call graphs."""
