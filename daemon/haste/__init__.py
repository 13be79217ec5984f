"""Makes Numba leave out work that need not be done, in a process that only compiles; the code computes the same.

    hurry()      before the first kernel is compiled; compiler.py calls it, and nobody else

- Kernels that only other kernels call get no entry for Python. They are part of their callers' machine code, so they
  get none of their own, and the optimiser sees them there and not by themselves as well.
- Declarations, which have nothing in them, are not optimised.
- A call with a number that is known gets the code of one with any number; the optimiser knows the number all the same.
- The type of an operation is looked up once for the same arguments, settings are compared by what was set, the words
  for a record are made once, and the variables of a statement are listed without a call for each of its parts.
- Values without references, such as tuples of numbers, are not taken apart to count references.
- Errors that only say that something does not fit have no words, lifetimes of variables are worked out where somebody
  asks, registries are looked through when they have grown.
- Nobody listens to the lock of the optimiser, which is told a hundred thousand times that it is taken.

All of it reaches into Numba. What a version of Numba does not have is left as it is.
"""

from __future__ import annotations

from contextlib import suppress

from watchkeeper.daemon.haste import inference, machine
from watchkeeper.daemon.haste.inner import inner_kernels

CHANGES = (
    inference.remember_types,
    inference.remember_records,
    inference.forget_numbers,
    inference.compare_what_was_set,
    inference.list_variables,
    inference.count_references,
    inference.say_nothing_of_errors,
    inference.find_lifetimes_when_asked,
    inference.register_what_is_new,
    inference.know_operators,
    inference.remember_signatures,
    machine.tell_nobody,
)


def hurry() -> None:
    """Change the habits of Numba in this process."""
    for change in CHANGES:
        with suppress(AttributeError):
            change()
    with suppress(AttributeError):
        machine.give_no_entry(inner_kernels())
        machine.optimise_definitions()
        machine.make_code_when_called()
