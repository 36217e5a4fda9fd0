# The folder argv[1], packed as argv[2]: a .zip, else a .tar.gz. Times and owners are no part of it: two runs give the same.
import gzip
import io
import pathlib
import sys
import tarfile
import zipfile

folder, archive = map(pathlib.Path, sys.argv[1:])
files = [
    (f"{folder.name}/{path.name}", path.read_bytes(), 0o755 if path.stem == "tricorn" else 0o644)
    for path in sorted(folder.iterdir())
]
if archive.suffix == ".zip":
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3
            entry.external_attr = (0o100000 | mode) << 16
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
else:
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, data, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, 315532800
            tar.addfile(entry, io.BytesIO(data))
