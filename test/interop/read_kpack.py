"""An independent reader and writer of .kpack archives, on Debian's python3-zstandard and python3-msgpack alone.

read ARCHIVE: one JSON object on stdout, SHA-256 by "KEY TARGET".
write ARCHIVE SCHEME: an archive of its own, its digests on stdout.
"""
import hashlib
import json
import struct
import sys

import msgpack
import zstandard


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    magic, version, toc_offset = struct.unpack_from("<4sIQ", data)
    assert magic == b"KPAK" and version == 1, (magic, version)
    toc = msgpack.unpackb(data[toc_offset:], raw=False, strict_map_key=True)
    scheme = toc["compression_scheme"]
    for key in ("format_version", "group_name", "gfx_arch_family", "gfx_arches"):
        assert key in toc, key
    if scheme == "none":
        kernels = [data[blob["offset"]:blob["offset"] + blob["size"]] for blob in toc["blobs"]]
    else:
        assert scheme == "zstd-per-kernel", scheme
        area = data[toc["zstd_offset"]:toc["zstd_offset"] + toc["zstd_size"]]
        assert toc["zstd_offset"] + toc["zstd_size"] == toc_offset
        (count,) = struct.unpack_from("<I", area)
        position, kernels = 4, []
        for _ in range(count):
            (size,) = struct.unpack_from("<I", area, position)
            # decompress() refuses frames without a content size, as ROCm's tool does.
            kernels.append(zstandard.ZstdDecompressor().decompress(area[position + 4:position + 4 + size]))
            position += 4 + size
        assert position == len(area), (position, len(area))
    digests = {}
    for key, targets in toc["toc"].items():
        for target, entry in targets.items():
            kernel = kernels[entry["ordinal"]]
            assert entry["type"] == "hsaco" and entry["original_size"] == len(kernel)
            assert target in toc["gfx_arches"], target
            digests[f"{key} {target}"] = hashlib.sha256(kernel).hexdigest()
    return {"group": toc["group_name"], "family": toc["gfx_arch_family"], "stored": len(kernels), "kernels": digests}


def write(path, scheme):
    kernels = [bytes([index]) * (100 * index + 1) + hashlib.sha512(b"%d" % index).digest() for index in range(40)]
    entries, area = {}, b""
    for index, kernel in enumerate(kernels):
        key = f"lib/lib{index % 7}-例え.so#{index % 3}"
        target = f"gfx{900 + index}" + (":xnack-" if index % 2 else "")
        entries.setdefault(key, {})[target] = {"type": "hsaco", "ordinal": index, "original_size": len(kernel)}
    toc = {
        "format_version": 1,
        "group_name": "from python",
        "gfx_arch_family": "many",
        "gfx_arches": sorted({target for targets in entries.values() for target in targets}),
        "toc": entries,
        "compression_scheme": scheme,
    }
    if scheme == "none":
        toc["blobs"] = []
        for kernel in kernels:
            toc["blobs"].append({"offset": 64 + len(area), "size": len(kernel)})
            area += kernel
    else:
        area = struct.pack("<I", len(kernels))
        for index, kernel in enumerate(kernels):
            frame = zstandard.ZstdCompressor(level=1 + index % 22).compress(kernel)
            area += struct.pack("<I", len(frame)) + frame
        toc["zstd_offset"], toc["zstd_size"] = 64, len(area)
    with open(path, "wb") as file:
        file.write(struct.pack("<4sIQ", b"KPAK", 1, 64 + len(area)).ljust(64, b"\0") + area)
        file.write(msgpack.packb(toc, use_bin_type=True))
    return read(path)


print(json.dumps(read(sys.argv[2]) if sys.argv[1] == "read" else write(sys.argv[2], sys.argv[3])))
