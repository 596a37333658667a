"""The arithmetic: free functions of arrays and scalars, compiled by Numba, each equal to a naive twin in the tests. The only package that imports numba.

A kernel gives the GIL away (`nogil`) only if it works for long: the top-k of a query with many postings, and all that builds segments. The short ones keep it. A thread that
gives it away for ten microseconds wakes all who wait, takes it back before they run, and has them pay for that: adding records one nogil call each made a search beside it wait
hundreds of times.
"""
