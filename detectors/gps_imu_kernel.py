"""proto"""
from __future__ import annotations
import math
from typing import NamedTuple
import numpy as np
from numba import njit
from watchkeeper.detectors.eskf import ATT, VEL, POS, GYR, ACC, GRAVITY, STATES, strapdown, spread, observe, correct, level, turn_about_down
from watchkeeper.detectors.gps_imu_state import *
from watchkeeper.streams.batch import F8, I4


class Params(NamedTuple):
    threshold: float = 5.0
    delay: float = 0.2
    pos_std: float = 0.7
    vel_std: float = 0.3
    timing: float = 0.07
    gyro_noise: float = 0.003
    accel_noise: float = 0.1
    gyro_walk: float = 2e-4
    accel_walk: float = 3e-3
    warmup: float = 20.0
    recover: float = 30.0
    imu_gap: float = 0.15
    enu: bool = False
    flu: bool = False


@njit(cache=True)
def restart(status, acc, imu, gps, align, t):
    status[PHASE] = LEVELLING
    status[BIN_COUNT] = 0
    status[BIN_FIRST] = 0
    status[PLACED] = 0
    acc[:] = 0.0
    align[:] = 0.0
    imu[I_BIN_T] = t
    imu[I_SUM:I_SUM + 6] = 0.0
    imu[I_LEVEL_S:I_VIB] = 0.0
    gps[G_HORIZON] = t


@njit(cache=True)
def begin_align(status, nav, cov, acc, imu, align):
    s = imu[I_LEVEL_S]
    m = imu[I_LEVEL:I_LEVEL + 6] / s
    level(nav, m[0], m[1], m[2])
    norm = math.sqrt(m[0] ** 2 + m[1] ** 2 + m[2] ** 2)
    spread_f = math.sqrt(max(0.0, imu[I_LEVEL_SQ] / s - m[0] ** 2 - m[1] ** 2 - m[2] ** 2))
    spread_w = math.sqrt(max(0.0, imu[I_LEVEL_SQ + 1] / s - m[3] ** 2 - m[4] ** 2 - m[5] ** 2))
    rate = math.sqrt(m[3] ** 2 + m[4] ** 2 + m[5] ** 2)
    quiet = spread_f < 0.5 and spread_w < 0.05 and rate < 0.1 and abs(norm - GRAVITY) < 0.5
    nav[10:16] = 0.0
    if quiet:
        nav[10:13] = m[3:6]
    cov[:, :] = 0.0
    for k in range(2):
        cov[k, k] = 0.03 ** 2 if quiet else 0.2 ** 2
    for k in range(3):
        cov[GYR + k, GYR + k] = 0.005 ** 2 if quiet else 0.02 ** 2
        cov[ACC + k, ACC + k] = 0.3 ** 2
    acc[:] = 0.0
    align[:] = 0.0
    status[PHASE] = ALIGNING


@njit(cache=True)
def add_noise(cov, acc, imu, work, par):
    t = acc[12]
    d2 = acc[9] ** 2 + acc[10] ** 2 + acc[11] ** 2
    va = (par.accel_noise ** 2 + imu[I_VIB] * BIN_S) * t + 0.0001 * d2
    vg = par.gyro_noise ** 2 * t
    for k in range(3):
        work[ATT + k] = vg + (0.01*imu[I_VIB+1])**2
        work[VEL + k] = va
        work[POS + k] = va * t * t / 3.0
        work[GYR + k] = par.gyro_walk ** 2 * t
        work[ACC + k] = par.accel_walk ** 2 * t
    imu[I_VIB + 1] = 0.0
    spread(cov, acc, work)


@njit(cache=True)
def consume(status, nav, cov, acc, bin_t, bins, imu, gps, align, work, par):
    k = status[BIN_FIRST]
    t = bin_t[k]
    status[BIN_FIRST] = (k + 1) % BINS
    status[BIN_COUNT] -= 1
    start = gps[G_HORIZON]
    dt = t - start
    if dt <= 0.0:
        return
    turn = bins[k, 0:3]
    push = bins[k, 3:6]
    d2 = 0.0
    for j in range(3):
        f = push[j] / dt
        d2 += (f - imu[I_BIN_LAST + j]) ** 2
        imu[I_BIN_LAST + j] = f
    # half the squared difference between neighbours is the variance of white noise
    w = min(1.0, dt)
    imu[I_VIB] += w * (min(d2 / 6.0, 400.0) - imu[I_VIB])
    imu[I_VIB + 1] += math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    gps[G_HORIZON] = t
    if status[PHASE] == LEVELLING:
        imu[I_LEVEL_S] += dt
        for j in range(3):
            imu[I_LEVEL + j] += push[j]
            imu[I_LEVEL + 3 + j] += turn[j]
            imu[I_LEVEL_SQ] += push[j] ** 2 / dt
            imu[I_LEVEL_SQ + 1] += turn[j] ** 2 / dt
        if imu[I_LEVEL_S] >= 1.0:
            begin_align(status, nav, cov, acc, imu, align)
        return
    strapdown(nav, acc, dt, turn, push)
    if dt > par.imu_gap:
        for j in range(3):
            cov[ATT + j, ATT + j] += (0.3 * dt) ** 2
            cov[VEL + j, VEL + j] += (2.0 * dt) ** 2
    if acc[12] >= 0.24:
        add_noise(cov, acc, imu, work, par)


@njit(cache=True)
def take_imu(status, nav, cov, acc, bin_t, bins, imu, gps, align, work, par, t, data, i):
    if status[PHASE] == EMPTY or t - imu[I_T] > 2.0:
        restart(status, acc, imu, gps, align, t)
        imu[I_T] = t
        for j in range(6):
            imu[I_LAST + j] = data[j, i]
        return
    dt = t - imu[I_T]
    if dt <= 0.0:
        return
    same = True
    for j in range(6):
        x = data[j, i]
        sgn = -1.0 if par.flu and (j % 3) > 0 else 1.0
        x *= sgn
        last = imu[I_LAST + j]
        if x != last:
            same = False
        jj = j + 3 if j < 3 else j - 3
        imu[I_SUM + jj] += 0.5 * (last + x) * dt
        imu[I_LAST + j] = x
    imu[I_T] = t
    if same:
        imu[I_STUCK_S] += dt
    else:
        imu[I_STUCK_S] = 0.0
        status[IMU_VARIED] += 1
    if t - imu[I_BIN_T] >= 0.8 * BIN_S:
        if status[BIN_COUNT] == BINS:
            consume(status, nav, cov, acc, bin_t, bins, imu, gps, align, work, par)
        k = (status[BIN_FIRST] + status[BIN_COUNT]) % BINS
        bin_t[k] = t
        for j in range(6):
            bins[k, j] = imu[I_SUM + j]
            imu[I_SUM + j] = 0.0
        status[BIN_COUNT] += 1
        imu[I_BIN_T] = t


@njit(cache=True)
def yaw_fit(align, wx, wy, gx, gy, decay):
    for j in range(9):
        align[j] *= decay
    align[A_N] += 1.0
    align[A_W] += wx
    align[A_W + 1] += wy
    align[A_G] += gx
    align[A_G + 1] += gy
    align[A_DOT] += wx * gx + wy * gy
    align[A_CROSS] += wx * gy - wy * gx
    align[A_WW] += wx * wx + wy * wy
    align[A_GG] += gx * gx + gy * gy
    n = align[A_N]
    mwx, mwy, mgx, mgy = align[A_W] / n, align[A_W + 1] / n, align[A_G] / n, align[A_G + 1] / n
    dot = align[A_DOT] - n * (mwx * mgx + mwy * mgy)
    cross = align[A_CROSS] - n * (mwx * mgy - mwy * mgx)
    ww = align[A_WW] - n * (mwx * mwx + mwy * mwy)
    gg = align[A_GG] - n * (mgx * mgx + mgy * mgy)
    if n < 5.0 or ww <= 0.0:
        return 0.0, 10.0, 0.0
    fit2 = dot * dot + cross * cross
    resid = max(gg - fit2 / ww, 0.0) / (2.0 * n - 3.0)
    std = math.sqrt((resid + 0.01) / ww)
    gain = math.sqrt(fit2) / ww
    return math.atan2(cross, dot), std, gain


@njit(cache=True)
def d2x2(a, b, c, x, y):
    return math.sqrt(max(0.0, (c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b)))


@njit(cache=True)
def take_gps(status, nav, cov, acc, bin_t, bins, imu, gps, align, scale, work, par, t, data, i, out, dbg):
    th = t - par.delay
    while status[BIN_COUNT] > 0 and bin_t[status[BIN_FIRST]] <= th:
        consume(status, nav, cov, acc, bin_t, bins, imu, gps, align, work, par)
    if status[PHASE] < ALIGNING:
        return
    px, py, pz, vx, vy, vz = data[0, i], data[1, i], data[2, i], data[6, i], data[7, i], data[8, i]
    if status[PLACED] == 0:
        nav[4], nav[5], nav[6], nav[7], nav[8], nav[9] = vx, vy, vz, px, py, pz
        for k in range(3):
            cov[VEL + k, VEL + k] = par.vel_std ** 2 * 4
            cov[POS + k, POS + k] = par.pos_std ** 2 * 4
        acc[:] = 0.0
        status[PLACED] = 1
        gps[G_T] = t
        gps[1], gps[2], gps[3], gps[4], gps[5], gps[6] = px, py, pz, vx, vy, vz
        return
    dt = t - gps[G_T]
    tg = acc[16]
    if tg <= 0.0:
        return
    wx, wy = acc[13], acc[14]
    if acc[12] > 0.0:
        add_noise(cov, acc, imu, work, par)
    ax, ay, az = acc[13] / tg, acc[14] / tg, acc[15] / tg + GRAVITY
    acc[13:17] = 0.0
    if status[PHASE] == ALIGNING:
        q = wx * wx + wy * wy
        for k in range(2):
            cov[VEL + k, VEL + k] += q
            cov[POS + k, POS + k] += q * tg * tg / 4
        cov[2, :] = 0.0
        cov[:, 2] = 0.0
    tau = th - gps[G_HORIZON]
    speed = math.sqrt(nav[4] ** 2 + nav[5] ** 2)
    ah = max(math.sqrt(ax * ax + ay * ay + az * az), gps[G_ACCEL] * math.exp(-dt / 2.0))
    gps[G_ACCEL] = ah
    rp = par.pos_std ** 2 + (par.timing * speed) ** 2
    rv = par.vel_std ** 2 + (par.timing * ah) ** 2
    rpz = 4.0 * par.pos_std ** 2 + (par.timing * nav[6]) ** 2
    rvz = 2.0 * par.vel_std ** 2 + (par.timing * ah) ** 2
    yp0 = px - nav[7] - nav[4] * tau
    yp1 = py - nav[8] - nav[5] * tau
    yp2 = pz - nav[9] - nav[6] * tau
    yv0 = vx - nav[4] - ax * tau
    yv1 = vy - nav[5] - ay * tau
    yv2 = vz - nav[6] - az * tau
    dpos = d2x2(cov[6, 6] + rp, cov[6, 7], cov[7, 7] + rp, yp0, yp1)
    dvel = d2x2(cov[3, 3] + rv, cov[3, 4], cov[4, 4] + rv, yv0, yv1)
    dver = d2x2(cov[8, 8] + rpz, cov[8, 5], cov[5, 5] + rvz, yp2, yv2)
    lam = math.exp(-dt / 5.0)
    r0 = lam * gps[G_CONSIST] + px - gps[1] - 0.5 * dt * (vx + gps[4])
    r1 = lam * gps[G_CONSIST + 1] + py - gps[2] - 0.5 * dt * (vy + gps[5])
    r2 = lam * gps[G_CONSIST + 2] + pz - gps[3] - 0.5 * dt * (vz + gps[6])
    gps[G_CONSIST], gps[G_CONSIST + 1], gps[G_CONSIST + 2] = r0, r1, r2
    dcon = math.sqrt((r0 * r0 + r1 * r1) / rp + r2 * r2 / rpz)
    lam = 0.9
    norm = math.sqrt(1 - lam * lam) / (1 - lam)
    e0 = yv0 / math.sqrt(cov[3, 3] + rv)
    e1 = yv1 / math.sqrt(cov[4, 4] + rv)
    e2 = yv2 / math.sqrt(cov[5, 5] + rvz)
    gps[G_DRIFT] += (1 - lam) * (e0 - gps[G_DRIFT])
    gps[G_DRIFT + 1] += (1 - lam) * (e1 - gps[G_DRIFT + 1])
    gps[G_DRIFT + 2] += (1 - lam) * (e2 - gps[G_DRIFT + 2])
    ddri = math.sqrt(gps[G_DRIFT] ** 2 + gps[G_DRIFT + 1] ** 2 + gps[G_DRIFT + 2] ** 2) * math.sqrt((1 + lam) / (1 - lam))
    work[:16] = 0.0
    err = work[:16]
    row = work[16:32]
    okv = dvel < 6
    okz = dver < 6
    okp = dpos < 6
    if okp:
        observe(cov, err, row, 6, yp0, rp)
        observe(cov, err, row, 7, yp1, rp)
    if okz:
        observe(cov, err, row, 8, yp2, rpz)
        observe(cov, err, row, 5, yv2, rvz)
    if okv:
        observe(cov, err, row, 3, yv0, rv)
        observe(cov, err, row, 4, yv1, rv)
    correct(nav, err)
    gx, gy = vx - gps[4], vy - gps[5]
    psi, std, gain = yaw_fit(align, wx, wy, gx, gy, math.exp(-dt / 30.0))
    if status[PHASE] == ALIGNING and std < 0.15 and 0.6 < gain < 1.5:
        turn_about_down(nav, psi)
        align[:] = 0.0
        for k in range(16):
            for j in range(16):
                if j != k:
                    cov[k, j] = 0.0
        cov[2, 2] = max(std, 0.1) ** 2
        cov[0, 0] += 0.03 ** 2
        cov[1, 1] += 0.03 ** 2
        nav[4:10] = np.array((vx, vy, vz, px, py, pz))
        status[PHASE] = TRACKING
        gps[G_LATCH_T] = t
    gps[G_T] = t
    gps[1], gps[2], gps[3], gps[4], gps[5], gps[6] = px, py, pz, vx, vy, vz
    out[0], out[1], out[2], out[3], out[4] = dpos, dvel, dver, dcon, ddri
    dbg[0] = status[PHASE]
    dbg[1], dbg[2], dbg[3], dbg[4], dbg[5], dbg[6] = yp0, yp1, yp2, yv0, yv1, yv2
    dbg[7], dbg[8], dbg[9] = psi, std, gain
    dbg[10] = math.sqrt(cov[2, 2])
    dbg[11] = math.sqrt(cov[0, 0])
    dbg[12:18] = nav[10:16]
    dbg[18] = imu[I_VIB]
    dbg[19:22] = err[0:3]
    w, x, y, z = nav[0], nav[1], nav[2], nav[3]
    dbg[22] = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    dbg[23] = math.atan2(2 * (w * x + y * z), 1 - 2 * (y * y + x * x))
    dbg[24] = math.asin(max(-1,min(1,2 * (w * y - x * z))))
    dbg[25] = math.sqrt(cov[6,6]+rp)
    dbg[26] = math.sqrt(cov[3,3]+rv)
    dbg[27]=ah; dbg[28]=speed


@njit(cache=True)
def run(tab, par, islot, it, idata, gslot, gt, gdata, out, dbg):
    work = np.zeros(64)
    i = 0
    g = 0
    ni = len(it)
    ng = len(gt)
    while i < ni or g < ng:
        s = islot[i] if i < ni and (g >= ng or islot[i] <= gslot[g]) else gslot[g]
        status = tab.status[s]; nav = tab.nav[s]; cov = tab.cov[s]; acc = tab.acc[s]; bin_t = tab.bin_t[s]; bins = tab.bins[s]
        imu = tab.imu[s]; gps = tab.gps[s]; align = tab.align[s]; scale = tab.scale[s]
        while True:
            hi = i < ni and islot[i] == s
            hg = g < ng and gslot[g] == s
            if hi and (not hg or it[i] <= gt[g]):
                take_imu(status, nav, cov, acc, bin_t, bins, imu, gps, align, work, par, it[i], idata, i)
                i += 1
            elif hg:
                take_gps(status, nav, cov, acc, bin_t, bins, imu, gps, align, scale, work, par, gt[g], gdata, g, out[g], dbg[g])
                g += 1
            else:
                break
