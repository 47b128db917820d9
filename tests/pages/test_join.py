"""Modules become one script, the same bytes each time."""

from pathlib import Path

import pytest

from fss_ecdf.pages.bundle import JoinError, bundle, in_order


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder / "main.js"


def test_what_is_imported_comes_first_and_once(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        a="export const one = 1;\n",
        b='import { one } from "./a.js";\n\nexport const two = one + one;\n',
        main='import { one } from "./a.js";\nimport {\n  two,\n} from "./b.js";\n\nuse(one, two);\n',
    )
    assert [path.name for path in in_order(main)] == ["a.js", "b.js", "main.js"]
    text = bundle(main)
    assert text == bundle(main)
    assert text.count("const one = 1;") == 1
    assert "import" not in text
    assert "export" not in text


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"a": "export const x = 1;\n", "main": 'import { x } from "./a.js";\nconst x = 2;\n'}, "x is declared"),
        ({"a": "const [x, y] = f();\n", "main": 'import { x } from "./a.js";\nlet y = 2;\n'}, "y is declared"),
        ({"a": 'import { x } from "./main.js";\n', "main": 'import { x } from "./a.js";\n'}, "imports itself"),
        ({"main": 'import x from "./a.js";\n'}, "not understood"),
        ({"main": "export default 5;\n"}, "not understood"),
    ],
)
def test_what_cannot_be_one_script_is_refused(tmp_path: Path, modules: dict[str, str], message: str) -> None:
    with pytest.raises(JoinError, match=message):
        bundle(write(tmp_path, **modules))
