"""Rings of a kernel: their protocol, and whether roles wait for one another in a circle.

protocol         how roles number tiles, and that they read them while they are there
runs             the beginning of a run, in which a deadlock shows
program          what decides about rings, as steps on numbers
steps            what such a program does with rings
natural_numbers  its operations on numbers
"""
