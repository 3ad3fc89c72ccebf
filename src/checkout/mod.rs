//! Reads and writes the source trees that are patched: git repositories, source distributions, plain folders.
