"""Ed25519 as RFC 8032, section 5.1, writes it: slow, and nothing of ours or of a library."""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(a, b):
    """5.1.4, in affine coordinates."""
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P


def times(n, point):
    total = (0, 1)
    while n:
        total = add(total, point) if n & 1 else total
        point, n = add(point, point), n >> 1
    return total


def decoded(text):
    """5.1.3; None if these bytes are no point."""
    y, sign = int.from_bytes(text, "little") & (2**255 - 1), text[31] >> 7
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return (P - x if x % 2 != sign else x), y


def encoded(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def public_of(secret):
    """5.1.5."""
    return encoded(times(_scalar(secret), BASE))


def signed(secret, message):
    """5.1.6."""
    public, prefix = public_of(secret), hashlib.sha512(secret).digest()[32:]
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    point = encoded(times(r, BASE))
    h = int.from_bytes(hashlib.sha512(point + public + message).digest(), "little")
    return point + ((r + h * _scalar(secret)) % L).to_bytes(32, "little")


def verified(public, message, signature):
    """5.1.7."""
    a, r, s = decoded(public), decoded(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return times(s, BASE) == add(r, times(h, a))


def _scalar(secret):
    n = int.from_bytes(hashlib.sha512(secret).digest()[:32], "little")
    return n & ((1 << 254) - 8) | (1 << 254)
