"""The modules of HTA's `hta.configs`, under their own names: which event arguments become columns."""
