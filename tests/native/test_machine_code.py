"""What is read out of a disassembly, before the driver relies on it (make sanitize)."""

import pytest

from tests.native.machine_code import UnknownAddressError, operand

RAX, RDI, R11, R12 = 0, 5, 11, 12


@pytest.mark.parametrize(
    ("instruction", "found"),
    [
        ("mov    (%rax),%rbx", (RAX, -1, 1, 0)),
        ("vpandq (%rax,%rdi,1),%zmm12,%zmm17", (RAX, RDI, 1, 0)),
        ("vmovdqu64 -0x80(%r12,%r11,8),%zmm0", (R12, R11, 8, -0x80)),
        ("lock add %rax,0x10(,%rdi,4)", (-1, RDI, 4, 0x10)),
        ("vpandq -0x8(%rax){1to8},%zmm8,%zmm1", (RAX, -1, 1, -8)),
        ("vpaddq %zmm1,%zmm2,%zmm3", None),
        ("lea    0x8(%rax,%rdi,2),%rbx", None),
        ("nopw   0x0(%rax,%rax,1)", None),
        ("vmovdqa 0x1234(%rip),%xmm0        # 5678 <P>", None),
    ],
)
def test_operands(instruction: str, found: tuple[int, int, int, int] | None) -> None:
    assert operand(instruction) == found


def test_a_vector_as_an_index_is_refused() -> None:
    with pytest.raises(UnknownAddressError):
        operand("vpgatherqq (%rax,%zmm1,8),%zmm0{%k1}")
