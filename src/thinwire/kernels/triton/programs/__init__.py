"""What runs on the GPU: Triton programs, a file for each family. Importing this package imports triton.

Every program works on one block of elements. Places are counted in 64 bits, so that tensors may be longer than 2**31.
Nothing depends on the order in which blocks run: what blocks add up together are whole numbers, or single bits.
"""
