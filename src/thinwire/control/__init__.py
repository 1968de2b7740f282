"""The mind: sense the wire, price every plan, choose density and parts together, keep choosing, explain.

Everything but `pilot` is pure: values in, values out, no clock and no rank, so that every rank that reads the same
notes comes to the same plan.
"""
