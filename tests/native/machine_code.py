"""python -m tests.native.machine_code PROGRAM: where each instruction of a program finds its operand in memory.

For tests/native/trace.c: the first line has the first and the last address of the code, each further one an instruction
with an operand in memory: its address, base and index register (by their place in the list, -1 for none), scale and
displacement. An operand relative to the instruction is always at the same address and left out. An instruction whose
address cannot be told from these, because a vector is the index, is an error.
"""

import re
import subprocess
import sys
from collections.abc import Iterator

REGISTERS = ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{i}" for i in range(8, 16))]

_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
_OPERAND = re.compile(r"(-?0x[0-9a-f]+)?\((?:%(\w+))?(?:,%(\w+)(?:,(\d))?)?\)")
_STRING = re.compile(r"\b(movs|stos|lods|cmps|scas)[bwlq]\b")


class UnknownAddressError(Exception):
    """An instruction whose address is not one of base, index, scale and displacement."""


def operand(instruction: str) -> tuple[int, int, int, int] | None:
    """Base, index, scale and displacement, or None where there is no operand in memory, or one that never moves."""
    text = instruction.split("#")[0]
    if _STRING.search(text):  # both ends move with one counter
        return REGISTERS.index("rdi"), REGISTERS.index("rsi"), 1, 0
    found = _OPERAND.search(text)
    if found is None or text.split()[0].startswith(("lea", "nop")) or "cs nopw" in text:
        return None
    displacement, base, index, scale = found.groups()
    if base == "rip":
        return None
    for name in (base, index):
        if name is not None and name not in REGISTERS:
            raise UnknownAddressError(instruction)
    places = [-1 if name is None else REGISTERS.index(name) for name in (base, index)]
    return places[0], places[1], int(scale or 1), int(displacement or "0", 16)


def instructions(program: str) -> Iterator[tuple[int, str]]:
    """Every instruction of a program, with its address."""
    command = ["objdump", "--disassemble", "--wide", "--no-show-raw-insn", program]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        found = _INSTRUCTION.match(line)
        if found:
            yield int(found[1], 16), found[2]


def main() -> None:
    code = list(instructions(sys.argv[1]))
    print(f"{code[0][0]:x} {code[-1][0] + 1:x}")
    for address, instruction in code:
        found = operand(instruction)
        if found is not None:
            print(f"{address:x}", *found)


if __name__ == "__main__":
    main()
