"""World: where people live, to the degree.

The table is made by `bench/inhabited.py` from the list of places with 1,000 people and more of GeoNames
(geonames.org, CC BY 4.0). A whole degree is inhabited if such a place is in it or in one of the eight around it.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["inhabited"]


@cache
def inhabited() -> NDArray[np.bool_]:
    """Return which degrees are inhabited: (181, 361), by rounded latitude from -90 and longitude from -180.

    >>> inhabited()[40 + 90, 116 + 180], inhabited()[-74 + 90, 41 + 180]  # Beijing; New York with exchanged axes
    (np.True_, np.False_)
    """
    bits = np.unpackbits(np.frombuffer(zlib.decompress(base64.b64decode(_INHABITED)), np.uint8))
    around = bits[: 181 * 360].reshape(181, 360).astype(np.bool_)
    return np.concatenate([around, around[:, :1]], axis=1)


_INHABITED = (
    "eNrt2E1O5EYUAOBneVE7+wLN+BqWppO6kkezACmAjXrBLnMBIq4xUqSZQizYTV8gEka9YDdtxAK3cPvl1a+r7IaBJIsooZBajf21XT+vqp4N8Fbe"
    "ylt5K2/lf1yi+hWYEY6rF+L0NZiL4hW4Kl5e59dhMT7yzI9584/hdz/CfsmqV+H8FbgOcNk+KWPxCswEsPC+Zf902BDuXoozAXF4lmP9DAYMr4xP"
    "dUckz5QjrFoYib+H2RRzRItj/wcNZPIy3RhX7lJDJMQPGoejkPlY+LjETt5ghIVfSQ8/TIaAcO1w63UFlLe7cLMDxztxio5k2Pn4Z4Ywm+BuB2af"
    "IA+wWls8zLH/iziRbfAm8RTjia0/o7OsH894wnZU6OtJN+AmdTgpbH+5vuM+PoybrAc1AxP6G3BrAxAXDndQ8I7iKIHZk7jnDsfbNuoglRg83Pk4"
    "t/gj1lEPaTGDJ/CFxdDWGt8WwBZnwwja7iV8g6nBvPu4JpwSzhzmA6ZvG7Tzi3XxuoJZegseRoMZRSXidsB9vAaYp6eEXZ1DjA7H395LzB6aIUCi"
    "EPdDOKQdddk8Lr2JFavLud95mHXHhOEZbL4mqtIUELNkrw672UZSgNmiL3IoEpC49rFw+Lsa24QBX/Uf2qxIFvWQDKQK1w5XOhCYnLy/9FkR78JM"
    "484EmLzhQjaXKSzcSrAOMKhu1XhJcVSFS529cuRhecMHvO/CjZAPddZ4rjAdFoj3whtqdXRtY9RiE4BUShHux/rKnW1UbzBey8N8lLRoPHMdo6NG"
    "jyt+CW3D0cVziUwNYGLx/RfIQ9y7ASxxpQbe4ctqjOkYwtAojdNeNSSu8iA3y/DxovGqTydTOqrvR2yE7y9qDzca65toPAxiivdXtU5wVDVai1uH"
    "/TXmfi10KlGajknVTfpHAeni1wDHFALCRb7G74BvrnBDeH0uxoMi3JxSOMnoNgw3LZ0LsZ1Jqmcf1D8JbVRthLJafZAiRnZ1NmMm+yBF2MdK4v6w"
    "FBDOVzHMRTSYSczXHZTVCFdmxlhMCz7DGhv2/ZAF2O0o3GKK9w5usS4bytlDzFszTRxuDKbkMAHGg/a1/HaMU4WzxhsNMyQtiyX+2cNM41oOZdjL"
    "VK/K4l7XmXqD8jfK09LRhQmnA25VPpFiRRtzBmotCTruSveGxNtLOcASi1Lh8LGHY2eSL4mPVk35oHC9G/cGU5wtj9Z0xTvaJimWsc2CZyQ163qb"
    "ivKb5eFaHGEzo6MbwqmXcGvc2dWbnkBSWriP6IqV7sIsyF/p+nJ2mD2QXwjCP+HnUpgOH7DN41xapHDOqbqXLkhGWVob2VwjuxBlnqNX6gmGsnat"
    "yNrWx1hNsmF7t7TOsvYmxEUYGR3Y35fdCPd8jPvGw6AmrCtZ8JAV4ZCXUJWOWRnUIth6NG4dxlMbpbqwahSgEufegmvKWmExClC5Amk8n+ByK8LM"
    "WY7qgDdoJteFwsEYcn9U5zLu8dzsXTJBfQarJdnOWrXklsGAlwGm862td8Un0eHFS9QOC4dcTb+OcWTXCRkZIcZP6qN5Bl8HA4g9m2I0ryImGKMn"
    "sGrgtV3P8VHutRi1z2BdVioI5McdTnEX4nuHt95c8fanYM31qi4m2BzKylH7KFx34GsvX6RaofvVZgfWVTPJC949uuMH4yx0gnUL0Z9FHu40Zjgp"
    "bbir/QAPb6/URFnSgoyTOfgEhuPoptuNe8KyIqk920gspngr8dbgA9P6Ho5hF5bd124IFwFObHJcdnxUY24W5AOTuklsdruszQLb1Ny+3ZlDSluT"
    "OIY0ujI92ZQjzOSLMdmphKvbb9IM2Kdfl01Dy4/GvErz1R/y24kwD77t0BU3uFmeNTw/UNXYz5pEYqYgCzG1ZHW3PEPMDyiPAFZIvOkkpr7YV3jY"
    "fRrWfVhS58BhXkDFirRPYEOphZAdty8fLlLw8Cy6JrzAlp5TToF9qeF9A3tidVnJKZ9+s7jH85rtiaz8avCiivs6oRoQpu908Ww5jOFpQzcifP47"
    "zSu2WlVxS5ieOmG1aGLBKKpMzN7h+lMzi8ScfYaclm52s6op+BL9lA8FqzSWAXB+R7O7ncunRsrhucR1rVhtMH3SYqcm5W/1rcWnLeECLKvzGStc"
    "8qHwWV1nmB/SM1N8urli+oVCJDSGIq5iH0M9YyAxsO0VJPtyKp+ouPRxrrpDLyEKw96VSNiA9esTHdC5SgltdFNDEuoTFb/D0wT9t2exfBL28PTl"
    "GYPw9Y8EicHT92wwflcEu9jT5VX4RWX278Bv5T9Z/gSZnwWn"
)
