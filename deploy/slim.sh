# slim.sh FOLDER: takes out of a virtual environment what no command of ours loads. The Dockerfile calls it.
set -eu
packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# The paper's solver, 60 MB: benchmarks and `solver="cvxopt"` compare with it, no command uses it.
"$1/bin/python" -m pip uninstall --quiet --yes cvxopt setuptools
"$1/bin/python" -m pip uninstall --quiet --yes pip
# Tests of others, samples, databases and formats of pictures that we do not have.
find "$packages" -depth -type d \( -name tests -o -name SelfTest -o -name sample_data \) -exec rm -r {} +
for name in oracle mysql mssql; do rm -r "$packages/sqlalchemy/dialects/$name"; done
rm -r "$packages/sqlalchemy/testing"
rm -f "$packages"/PIL/_avif.*.so "$packages"/pillow.libs/libavif-*
# Sources that were compiled long ago.
find "$packages" -type f \( -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.a' -o -name '*.pyx' -o -name '*.pxd' \
    -o -name '*.pyi' \) -delete
# Libraries that a wheel brought along were patched, and do not survive it.
find "$packages" -type f -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} + 2>/dev/null || true
