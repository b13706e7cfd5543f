/**
 * How large the floods are. A run of all tests takes sizes that show the same in a minute; SANDGLASS_FLOODS=full takes those of the promise:
 *
 *   SANDGLASS_FLOODS=full ./sandglass test floods
 */
const FULL = process.env['SANDGLASS_FLOODS'] === 'full'

export const GIB = 1024 * 1024 * 1024
export const MIB = 1024 * 1024

export const FLOODS = FULL
  ? { readBytes: 5 * GIB, execs: 10_000, cycles: 2_000, slowSeconds: 60 }
  : { readBytes: GIB / 2, execs: 2_000, cycles: 60, slowSeconds: 60 }

/** No process of ours may take more than this on top, whatever flows through it. */
export const GROWTH_BYTES = 32 * MIB
