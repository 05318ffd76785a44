"""The entries of the registry, by what they are about; `analysis.registry` puts them together."""
