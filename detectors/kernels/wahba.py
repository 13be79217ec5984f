"""Wahba's problem: the rotation that best turns one set of vectors onto another, by Davenport's q-method.

Given `B`, the sum of outer products (target x source), finds the unit quaternion of the rotation R that maximises
the sum of target . (R source). Pure arithmetic on 4 x 4 numbers; called by gps_imu once a second and vehicle
until its attitude is known.
"""

from __future__ import annotations

import math

from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

# Jacobi's method squares its error in each sweep; a 4 x 4 matrix is diagonal to rounding after five or six.
SWEEPS = 8


@njit(cache=True)
def best_rotation(b: F8, k: F8, vectors: F8, quat: F8) -> None:
    """Fill `quat` (w, x, y, z) from b[3, 3]; k[4, 4] and vectors[4, 4] are working space."""
    trace = b[0, 0] + b[1, 1] + b[2, 2]
    k[0, 0] = trace
    k[0, 1] = k[1, 0] = b[2, 1] - b[1, 2]
    k[0, 2] = k[2, 0] = b[0, 2] - b[2, 0]
    k[0, 3] = k[3, 0] = b[1, 0] - b[0, 1]
    for i in range(3):
        for j in range(3):
            k[1 + i, 1 + j] = b[i, j] + b[j, i]
        k[1 + i, 1 + i] -= trace
    _diagonalise(k, vectors)
    best = 0
    for i in range(1, 4):
        if k[i, i] > k[best, best]:
            best = i
    # of the two quaternions of one rotation, the one nearer to "no rotation"
    sign = -1.0 if vectors[0, best] < 0.0 else 1.0
    for i in range(4):
        quat[i] = sign * vectors[i, best]


@njit(cache=True)
def _diagonalise(k: F8, vectors: F8) -> None:
    """Jacobi rotations: k becomes diagonal, the columns of `vectors` its eigenvectors."""
    for i in range(4):
        for j in range(4):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        for p in range(3):
            for q in range(p + 1, 4):
                if k[p, q] == 0.0:
                    continue
                theta = (k[q, q] - k[p, p]) / (2.0 * k[p, q])
                t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                s = t * c
                for i in range(4):
                    x, y = k[i, p], k[i, q]
                    k[i, p], k[i, q] = c * x - s * y, s * x + c * y
                for i in range(4):
                    x, y = k[p, i], k[q, i]
                    k[p, i], k[q, i] = c * x - s * y, s * x + c * y
                for i in range(4):
                    x, y = vectors[i, p], vectors[i, q]
                    vectors[i, p], vectors[i, q] = c * x - s * y, s * x + c * y
